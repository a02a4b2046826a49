// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armemu"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/test/apifault"
)

const (
	subscription = "00000000-0000-0000-0000-000000000000"
	network      = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Network"
	vnetID       = network + "/virtualNetworks/vnet"
	nodes        = 6
)

// stage is a controller with a cloud of its own, behind a proxy. It has one Service
// and one pool, both called web, and some nodes.
type stage struct {
	*testing.T

	ns    string
	no    string
	proxy *apifault.Proxy
	cloud *armemu.Emulator

	mu         sync.Mutex
	conflicts  int    // so many writes of Azure meet a 409
	written    func() // called once Azure has taken a write, then forgotten
	reporting  func() // called before the lanes' next report, then forgotten
	unrecorded []string
	told       map[string]int // by reason, what the lanes told the Service
	failures   int            // reconciliations that returned an error, from the log
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, ns: newNamespace(t), proxy: newProxy(t), cloud: armemu.New(armemu.Options{Seed: 1}), told: map[string]int{}}
	s.no = strings.TrimLeft(strings.TrimPrefix(s.ns, "fault-"), "0")
	s.proxy.Confine(s.ns)
	for id, body := range map[string]string{
		vnetID: `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`,
		network + "/loadBalancers/" + s.ns: `{"location":"eastus","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"web",
			"properties":{"virtualNetwork":{"id":"` + vnetID + `"},"loadBalancerBackendAddresses":[{"name":"other","properties":{"ipAddress":"10.255.0.9"}}]}}]}}`,
	} {
		if err := s.cloud.Put(id, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= nodes; n++ {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(n)}}
		s.create(node)
		t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: s.ip(n)}}
		if err := api.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	s.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	s.create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: s.ns, Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: s.endpoints(1),
	})
	s.create(&v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef:   &v1alpha1.ServiceReference{Name: "web"},
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: s.ns}, PoolName: "web",
		},
	})
	return s
}

func (s *stage) node(n int) string { return fmt.Sprintf("%s-n%d", s.ns, n) }
func (s *stage) ip(n int) string   { return fmt.Sprintf("10.%s.0.%d", s.no, n) }

func (s *stage) create(obj client.Object) {
	s.Helper()
	if err := api.Create(s.Context(), obj); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) endpoints(on ...int) []discoveryv1.Endpoint {
	all := []discoveryv1.Endpoint{}
	for _, n := range on {
		all = append(all, discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}, NodeName: new(s.node(n))})
	}
	return all
}

// moves puts the endpoints on these nodes, past the proxy.
func (s *stage) moves(to ...int) {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{}
	if err := api.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: "web-1"}, slice); err != nil {
		s.Fatal(err)
	}
	slice.Endpoints = s.endpoints(to...)
	if err := api.Update(s.Context(), slice); err != nil {
		s.Fatal(err)
	}
}

// churns moves the endpoints about, ten times in two seconds of the real server's time.
func (s *stage) churns() {
	s.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for i := range 10 {
		s.moves(1+i%nodes, 1+(i+2)%nodes)
		<-tick.C
	}
}

// lasts lets a fault last.
func (s *stage) lasts(d time.Duration) {
	s.Helper()
	select {
	case <-time.After(d):
	case <-s.Context().Done():
	}
}

// pool returns what Azure holds, sorted.
func (s *stage) pool() []string {
	raw, _ := s.cloud.Get(network + "/loadBalancers/" + s.ns + "/backendAddressPools/web")
	return addressesIn(raw)
}

func addressesIn(raw []byte) []string {
	var body struct {
		Properties struct {
			LoadBalancerBackendAddresses []struct{ Properties struct{ IPAddress string } }
		}
	}
	_ = json.Unmarshal(raw, &body) // what cannot be read holds nothing
	ips := []string{}
	for _, a := range body.Properties.LoadBalancerBackendAddresses {
		ips = append(ips, a.Properties.IPAddress)
	}
	slices.Sort(ips)
	return ips
}

func (s *stage) status() v1alpha1.BackendPoolStatus {
	p := &v1alpha1.BackendPool{}
	_ = api.Get(context.Background(), client.ObjectKey{Namespace: s.ns, Name: "web"}, p) // empty if there is none
	return p.Status
}

// level waits until Azure holds these nodes and what is foreign, and the BackendPool
// says so; it returns how long that took.
func (s *stage) level(on ...int) time.Duration {
	s.Helper()
	start := time.Now()
	want := []string{"10.255.0.9"}
	for _, n := range on {
		want = append(want, s.ip(n))
	}
	slices.Sort(want)
	until(s.T, func() string {
		if got := s.pool(); !slices.Equal(got, want) {
			return fmt.Sprintf("the pool holds %v, want %v", got, want)
		}
		status := s.status()
		written := slices.Sorted(slices.Values(status.WrittenAddresses))
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced); c == nil || c.Reason != v1alpha1.ReasonLevel || len(written) != len(on) {
			return fmt.Sprintf("the BackendPool says %+v and records %v", c, written)
		}
		return ""
	})
	return time.Since(start)
}

// keptItsWord waits until the Service was told by events what the lanes had to say, and
// checks that no address was written before it was recorded.
func (s *stage) keptItsWord() {
	s.Helper()
	until(s.T, func() string {
		var list corev1.EventList
		if err := api.List(s.Context(), &list, client.InNamespace(s.ns)); err != nil {
			return err.Error()
		}
		got := map[string]int{}
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == "Service" {
				got[e.Reason] += int(max(e.Count, 1))
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !maps.Equal(got, s.told) {
			return fmt.Sprintf("events %v, want %v", got, s.told)
		}
		return ""
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range s.unrecorded {
		s.Error(what)
	}
}

// Do carries a request to the cloud, and looks whether a write was recorded.
func (s *stage) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		recorded := s.status().WrittenAddresses
		s.mu.Lock()
		for _, ip := range addressesIn(body) {
			if strings.HasPrefix(ip, "10."+s.no+".") && !slices.Contains(recorded, ip) {
				s.unrecorded = append(s.unrecorded, fmt.Sprintf("%s was written, recorded were %v", ip, recorded))
			}
		}
		conflict := s.conflicts > 0
		s.conflicts--
		s.mu.Unlock()
		if conflict {
			const body = `{"error":{"code":"AnotherOperationInProgress","message":"Not now."}}`
			return &http.Response{
				StatusCode: http.StatusConflict, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
			}, nil
		}
	}
	res, err := s.cloud.Transport().Do(req)
	if req.Method == http.MethodPut {
		s.mu.Lock()
		then := s.written
		s.written = nil
		s.mu.Unlock()
		if then != nil {
			then()
		}
	}
	return res, err
}

func (s *stage) afterNextWrite(then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = then
}

func (s *stage) beforeNextReport(first func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reporting = first
}

// writes counts the writes that came to Azure.
func (s *stage) writes() int { return len(s.cloud.Calls(armemu.OfKind(armemu.KindPut))) }

// azureIsBusy has the next writes of Azure meet a conflict.
func (s *stage) azureIsBusy(times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conflicts = times
}

// Write counts the reconciliations that the log says have failed.
func (s *stage) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "Reconciler error") {
		s.mu.Lock()
		s.failures++
		s.mu.Unlock()
	}
	if os.Getenv("WEIR_TEST_LOG") != "" {
		return os.Stderr.Write(line)
	}
	return len(line), nil
}

// counting counts what is told.
type counting struct {
	*kube.Cluster

	s *stage
}

// Report implements poolupdate.Reporter.
func (c counting) Report(ctx context.Context, r poolupdate.Report) {
	c.s.mu.Lock()
	for reason, names := range map[string][]poolupdate.ServiceName{
		kube.EventUpdated: r.Updated, kube.EventRetrying: r.Retrying, kube.EventFailed: r.Failed,
	} {
		if len(names) > 0 {
			c.s.told[reason] += len(names)
		}
	}
	first := c.s.reporting
	c.s.reporting = nil
	c.s.mu.Unlock()
	if first != nil {
		first()
	}
	c.Cluster.Report(ctx, r)
}

// running is a controller. err is what its manager returned, once ended is closed.
type running struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

// starts runs a controller as the application wires it, until the test ends.
func (s *stage) starts(requeue kube.Requeue, with ...func(*ctrl.Options)) *running {
	s.Helper()
	log := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opts := ctrl.Options{
		Scheme: kube.Scheme(), Cache: kube.CacheOptions(), Logger: logr.FromSlogHandler(log.Handler()),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	for _, change := range with {
		change(&opts)
	}
	must := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
	}
	reach := kube.NewReach(log)
	mgr, err := ctrl.NewManager(reach.Config(s.proxy.Config(), "weir/test"), opts)
	must(err)
	endpoint, token, err := azure.Emulator("http://127.0.0.1:1")
	must(err)
	arm, err := azure.New(azure.Options{
		Endpoint: endpoint, Credential: token, Transport: s, UserAgent: "weir/test",
		VirtualNetworkID: vnetID, Retry: azure.Retry{MaxRetries: -1},
	})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	k, err := kube.New(ctx, mgr, kube.Options{
		SubscriptionID: subscription, ResourceGroup: "rg", Log: log, Requeue: requeue, Reach: reach, RecheckAfter: 500 * time.Millisecond,
	})
	if err != nil {
		cancel()
		s.Fatal(err)
	}
	lanes := poolupdate.New(poolupdate.Config{
		Interval: time.Second, MaxRetries: 1, Azure: arm, Cluster: k, Ledger: k, Reporter: counting{k, s}, Log: log,
	})
	err = k.Setup(lanes)
	if err != nil {
		cancel()
		s.Fatal(err)
	}
	r := &running{stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = mgr.Start(ctx)
	}()
	s.Cleanup(func() { cancel(); <-r.ended })
	return r
}
