// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// provisionerCommand runs this binary as a provisioner.
const provisionerCommand = "attacked"

const (
	memoryOfContainer = 512 << 20
	maxPeakMemory     = memoryOfContainer / 2
)

func runProvisioner(server string) error {
	debug.SetMemoryLimit(460 << 20) // as in the Deployment
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: memoryOfContainer, Max: memoryOfContainer}); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	cfg := &rest.Config{Host: server, QPS: -1}
	api, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	r := New(Config{API: cfg, Cached: newCachedReader(api), Live: api, Writer: api, Events: noEvents{}, Log: slog.New(slog.DiscardHandler)})
	r.dial = func(ctx context.Context, network, address string) (net.Conn, error) { // the test's targets are on loopback
		return new(net.Dialer).DialContext(ctx, network, strings.Replace(address, "target.example.com", "127.0.0.1", 1))
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	workers := make(chan struct{}, maxConcurrentReconciles)
	var look func(types.NamespacedName)
	look = func(key types.NamespacedName) {
		go func() {
			workers <- struct{}{}
			defer func() { <-workers }()
			second, err := r.reconcile(ctx, reconcile.Request{NamespacedName: key})
			switch {
			case ctx.Err() != nil:
			case err != nil:
				time.AfterFunc(time.Second, func() { look(key) })
			case second.RequeueAfter > 0:
				time.AfterFunc(second.RequeueAfter, func() { look(key) })
			}
		}()
	}
	r.attempts.requeue, r.probes.requeue = look, look
	var list v1alpha1.ProvisionList
	if err := api.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		look(client.ObjectKeyFromObject(&list.Items[i]))
	}
	r.Run(ctx)
	return nil
}

// fakeAPIServer is a minimal API server of Weir's own cluster.
type fakeAPIServer struct {
	mu      sync.Mutex
	objects map[string]map[string]any
	version int
}

func (s *fakeAPIServer) addObject(path string, o any) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(err)
	}
	s.objects[path] = fields
}

func (s *fakeAPIServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimSuffix(req.URL.Path, "/status")
	w.Header().Set("Content-Type", "application/json")
	resources := func(gv string, resources ...metav1.APIResource) {
		writeJSON(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: resources})
	}
	switch {
	case path == "/api":
		writeJSON(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: "weir.dev/v1alpha1", Version: "v1alpha1"}
		writeJSON(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{{Name: "weir.dev", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}})
	case path == "/api/v1":
		resources("v1", metav1.APIResource{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, metav1.APIResource{Name: "secrets", Kind: "Secret", Namespaced: true}, metav1.APIResource{Name: "namespaces", Kind: "Namespace"})
	case path == "/apis/weir.dev/v1alpha1":
		resources("weir.dev/v1alpha1", metav1.APIResource{Name: "provisions", Kind: "Provision", Namespaced: true}, metav1.APIResource{Name: "partners", Kind: "Partner"}, metav1.APIResource{Name: "provisioningpolicies", Kind: "ProvisioningPolicy", Namespaced: true})
	case path == "/apis/weir.dev/v1alpha1/provisions":
		var items []any
		for _, path := range slices.Sorted(maps.Keys(s.objects)) {
			if strings.Contains(path, "/provisions/") {
				items = append(items, s.objects[path])
			}
		}
		writeJSON(w, map[string]any{"kind": "ProvisionList", "apiVersion": "weir.dev/v1alpha1", "items": items})
	case req.Method == http.MethodGet && s.objects[path] != nil:
		writeJSON(w, s.objects[path])
	case req.Method == http.MethodGet, req.Method == http.MethodPatch && s.objects[path] == nil:
		w.WriteHeader(http.StatusNotFound)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
	default:
		s.writeObject(w, req, path)
	}
}

func (s *fakeAPIServer) writeObject(w http.ResponseWriter, req *http.Request, path string) {
	var given map[string]any
	if err := json.NewDecoder(req.Body).Decode(&given); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.version++
	if req.Method == http.MethodPost {
		metadata, _ := given["metadata"].(map[string]any)
		path += fmt.Sprint("/", metadata["name"])
		s.objects[path] = given
	}
	got := s.objects[path]
	for _, field := range []string{"status", "data"} {
		if given[field] != nil {
			got[field] = given[field]
		}
	}
	if metadata, ok := got["metadata"].(map[string]any); ok {
		metadata["resourceVersion"] = fmt.Sprint(s.version)
	}
	writeJSON(w, got)
}

func (s *fakeAPIServer) provisionState(namespace, name string) (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, _ := s.objects["/apis/weir.dev/v1alpha1/namespaces/"+namespace+"/provisions/"+name]["status"].(map[string]any)
	n, _ := status["attemptNumber"].(float64)
	state, _ := status["state"].(string)
	return state, int(n)
}

func (s *fakeAPIServer) addProvision(namespace, name, target string, policy v1alpha1.RetryPolicy, texts ...map[string]string) {
	core := "/api/v1/namespaces/" + namespace
	p := &v1alpha1.Provision{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Provision"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Generation: 1, ResourceVersion: "1"},
		Spec:       v1alpha1.ProvisionSpec{Target: v1alpha1.ProvisionTarget{KubeconfigSecret: &v1alpha1.KubeconfigSecret{Name: name, Key: "kubeconfig"}}, Policy: &policy},
	}
	for n, text := range texts {
		source := fmt.Sprint(name, "-", n)
		p.Spec.Steps = append(p.Spec.Steps, v1alpha1.ProvisionStep{Name: fmt.Sprint("step-", n), DependsOn: []string{}, Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: source}}}})
		s.addObject(core+"/configmaps/"+source, corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: source}, Data: text})
	}
	s.addObject(core+"/secrets/"+name, corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{
		"kubeconfig": fmt.Appendf(nil, plainKubeconfig, "", strings.Replace(target, "127.0.0.1", "target.example.com", 1), ", insecure-skip-tls-verify: true", ""),
	}})
	s.addObject("/api/v1/namespaces/"+namespace, corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s.addObject("/apis/weir.dev/v1alpha1/namespaces/"+namespace+"/provisions/"+name, p)
}

// hangingTarget accepts TLS connections and never answers requests for silent.
type hangingTarget struct {
	fakeServer

	silent  func(*http.Request) bool
	kinds   bool // report the maximum number of kinds
	mu      sync.Mutex
	pending int // unanswered requests and large responses
}

// largeNode is a Node of 190,000 counted values that never becomes ready.
var largeNode = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","generation":2},"status":{"observedGeneration":1},"data":` + repeatJSON("{}", 95_000) + `}`

// manyKinds is a 3 MiB resource list with the maximum number of values.
var manyKinds = `{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true},` + repeatJSON(`{"name":"`+strings.Repeat("x", 1000)+`","kind":"A"}`, 3000)[1:] + `}`

func (h *hangingTarget) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if h.kinds && req.URL.Path == "/api/v1" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, manyKinds)
		return
	}
	if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/nodes/") {
		h.mu.Lock()
		h.pending++
		h.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, largeNode)
		return
	}
	if !h.silent(req) {
		h.fakeServer.ServeHTTP(w, req)
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	h.mu.Lock()
	h.pending++
	h.mu.Unlock()
	<-req.Context().Done()
}

func (h *hangingTarget) pendingRequests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pending
}

type child struct {
	*exec.Cmd

	stdin io.Closer
	said  *strings.Builder
}

func startProvisioner(t *testing.T, server string) *child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], provisionerCommand, server) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), "GOGC=")                                         // its memory is measured
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output := &strings.Builder{}
	cmd.Stderr, cmd.Stdout = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{cmd, in, output}
}

func (c *child) processorTime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
	if err != nil {
		t.Fatalf("the process has ended: %v", err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var user, system int
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (c *child) peakMemory(t *testing.T) int {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		t.Fatalf("the process has ended: %v\n%s", err, lastBytes(c.said.String()))
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kB int
		if _, err := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kB); err == nil {
			return kB << 10
		}
	}
	t.Fatalf("the process has ended\n%s", lastBytes(c.said.String()))
	return 0
}

func lastBytes(text string) string { return text[max(0, len(text)-2000):] }

func (c *child) waitFor(t *testing.T, about string, expect func() bool) {
	t.Helper()
	for !expect() {
		c.peakMemory(t)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("it does not come about: %s", about)
		}
	}
}

// Hostile namespaces that make the process decode, hold or hide large inputs, also after a kill, do
// not stop a neighbor's Provision.
func TestMemoryUnderAttack(t *testing.T) {
	if testing.Short() {
		t.Skip("the processes have a limit of memory, and the race detector takes more")
	}
	t.Parallel()
	object := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: ["
	bomb := map[string]string{}
	for n := range 4 {
		bomb[fmt.Sprint("text-", n)] = object + strings.Repeat("{a},", 64_000) + "]}"
	}
	secrets := map[string]string{}
	for n := range 4 {
		secrets[fmt.Sprint("text-", n)] = fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: a%d}, stringData: {a: \"%s\", b: \"%s\"}}", n, strings.Repeat(`\x01`, 32<<10), strings.Repeat(`\x01`, 15<<10))
	}
	var several []map[string]string // the log hides up to nine forms of each Secret
	for n := range 8 {
		var values strings.Builder
		for i := range 44 {
			value := strings.Repeat("\x01", 16_000) + fmt.Sprint(n, "-", i)
			fmt.Fprintf(&values, "k%d: %s, ", i, base64.StdEncoding.EncodeToString([]byte(value)))
		}
		several = append(several, map[string]string{"text": fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: a%d}, data: {%s}}", n, values.String())})
	}
	never := func(*http.Request) bool { return false }
	all := func(*http.Request) bool { return true }
	last := func(req *http.Request) bool {
		return req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/a7")
	}
	writes := func(req *http.Request) bool { return req.Method == http.MethodPatch }
	for name, tt := range map[string]struct {
		steps  []map[string]string
		silent func(*http.Request) bool
	}{
		"a target that never answers":             {[]map[string]string{bomb, bomb}, all},
		"a target that never answers an apply":    {[]map[string]string{bomb, bomb}, writes},
		"large secrets":                           {[]map[string]string{secrets, secrets}, writes},
		"many secrets":                            {several, last},
		"many kinds":                              {[]map[string]string{{"a": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"}}, writes},
		"large answers":                           {[]map[string]string{{"a": "{apiVersion: v1, kind: Node, metadata: {name: a}}"}}, never},
		"many secrets, and a target that answers": {append(several, bomb), never},
	} {
		t.Run(name, func(t *testing.T) {
			const each = 4
			namespaces := 3
			api, hostile := &fakeAPIServer{objects: map[string]map[string]any{}}, &hangingTarget{silent: tt.silent, kinds: name == "many kinds"}
			if hostile.kinds {
				namespaces = 8
			}
			target, friendly, here := httptest.NewTLSServer(hostile), httptest.NewTLSServer(&fakeServer{}), httptest.NewServer(api)
			defer here.Close()
			defer friendly.Close()
			defer target.Close()
			defer target.CloseClientConnections()
			retries := int32(1000)
			retryPolicy := v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1s", MaxInterval: "1s", AttemptTimeout: "24h"}
			for n := range namespaces * each {
				api.addProvision(fmt.Sprint("attacker-", n%namespaces), fmt.Sprint("edge-", n), target.URL, retryPolicy, tt.steps...)
			}
			api.addProvision("shop", "edge", friendly.URL, retryPolicy, map[string]string{"a": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"})
			begun := func() bool {
				for n := range namespaces * each {
					if _, begun := api.provisionState(fmt.Sprint("attacker-", n%namespaces), fmt.Sprint("edge-", n)); begun == 0 {
						return false
					}
				}
				return true
			}
			busy := func() bool { // all hanging requests are in flight
				return begun() && (hostile.pendingRequests() >= 5 || name == "many secrets, and a target that answers")
			}
			first := startProvisioner(t, here.URL)
			first.waitFor(t, "all attempts have begun", busy)
			first.waitFor(t, "the neighbor is provisioned", func() bool {
				state, _ := api.provisionState("shop", "edge")
				return state == string(policy.Succeeded)
			})
			time.Sleep(5 * time.Second) // a shorter time would prove less
			before := first.peakMemory(t)
			_ = first.Process.Kill()
			_ = first.Wait()
			hostile.mu.Lock()
			hostile.pending = 0
			hostile.mu.Unlock()
			second := startProvisioner(t, here.URL)
			second.waitFor(t, "attempts are resumed", busy)
			time.Sleep(5 * time.Second)
			after := second.peakMemory(t)
			_ = second.Process.Kill()
			_ = second.Wait()
			t.Logf("%d MiB, after it was killed %d MiB", before>>20, after>>20)
			if before > maxPeakMemory || after > maxPeakMemory {
				t.Errorf("%d MiB are resident, after it was killed %d MiB, want %d at most", before>>20, after>>20, maxPeakMemory>>20)
			}
		})
	}
}

// Large manifests that the target rejects, retried every second, do not saturate the processor.
func TestProcessorUnderAttack(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes ten times as long")
	}
	t.Parallel()
	const provisions, most = 40, 0.7
	api := &fakeAPIServer{objects: map[string]map[string]any{}}
	refuses := &fakeServer{}
	target, here := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPatch {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden})
			return
		}
		refuses.ServeHTTP(w, req)
	})), httptest.NewServer(api)
	defer here.Close()
	defer target.Close()
	retries := int32(1_000_000)
	policy := v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1s", Factor: "1", MaxInterval: "1s"}
	for n := range provisions {
		api.addProvision(fmt.Sprint("attacker-", n%4), fmt.Sprint("edge-", n), target.URL, policy, map[string]string{
			"text": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: [" + strings.Repeat("{a},", 60_000) + "]}",
		})
	}
	process := startProvisioner(t, here.URL)
	time.Sleep(20 * time.Second) // until the burst is used up
	before, began := process.processorTime(t), time.Now()
	time.Sleep(30 * time.Second)
	share := (process.processorTime(t) - before).Seconds() / time.Since(began).Seconds()
	_ = process.Process.Kill()
	_ = process.Wait()
	t.Logf("%.0f %% of a processor", 100*share)
	if share > most {
		t.Errorf("%.0f %% of a processor, want %.0f %% at most", 100*share, 100*most)
	}
}
