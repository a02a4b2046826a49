// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/offline"
	"weir.dev/weir/lab/process"
	"weir.dev/weir/test/controlplane"
)

// snapshotFolder is a folder with the state that cloud-provider-azure left.
type snapshotFolder string

// Both pool types.
const (
	ofAddresses  snapshotFolder = "../../internal/app/testdata/adoption/"
	ofInterfaces snapshotFolder = "../../internal/app/testdata/adoption-interfaces/"
)

// resource is an Azure resource in a snapshot.
type resource struct {
	ID   string          `json:"id"`
	Body json.RawMessage `json:"body"`
}

// readResources returns all Azure resources in creation order.
func (s snapshotFolder) readResources(t *testing.T) []resource {
	t.Helper()
	raw, err := os.ReadFile(string(s) + "resources.json")
	if err != nil {
		t.Fatal(err)
	}
	var resources []resource
	if err := json.Unmarshal(raw, &resources); err != nil {
		t.Fatal(err)
	}
	return resources
}

// world is the cluster, its Azure, and the program.
type world struct {
	*testing.T
	*cloud
	left snapshotFolder
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// createObjects creates the original objects and returns the Services. They are deleted at the end of the
// test.
func (w *world) createObjects() []corev1.Service {
	w.Helper()
	w.Cleanup(w.clear)
	file, err := os.Open(string(w.left) + "services.yaml")
	w.must(err)
	defer file.Close()
	var objects offline.Objects
	w.must(errors.Join(objects.DecodeFile("services.yaml", file)...))
	for i := range objects.Nodes {
		w.create(&objects.Nodes[i])
	}
	for i := range objects.Services {
		w.create(&objects.Services[i])
	}
	for i := range objects.Slices {
		w.create(&objects.Slices[i])
	}
	return objects.Services
}

// clear deletes a test's objects and what Weir wrote for it.
func (w *world) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var services corev1.ServiceList
	var pools v1alpha1.BackendPoolList
	if err := errors.Join(cluster.List(ctx, &services), cluster.List(ctx, &pools)); err != nil {
		w.Fatal(err)
	}
	for i := range services.Items {
		w.deleteObject(ctx, &services.Items[i])
	}
	for i := range pools.Items {
		w.deleteObject(ctx, &pools.Items[i])
	}
	for _, args := range [][]string{
		{"delete", "nodes", "--all"},
		{"delete", "endpointslices,events", "--all", "--all-namespaces"},
		{"delete", "configmaps,leases", "--all", "--namespace", "weir-system"},
	} {
		if out, err := kubectl(ctx, args...); err != nil {
			w.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
	}
}

// deleteObject deletes an object regardless of finalizers; the API server recreates its own.
func (w *world) deleteObject(ctx context.Context, obj client.Object) {
	deletion := cluster.Delete(ctx, obj) // first: nothing adds a finalizer to a deleted object
	released := cluster.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if err := errors.Join(client.IgnoreNotFound(deletion), client.IgnoreNotFound(released)); err != nil {
		w.Errorf("%s: %v", obj.GetName(), err)
	}
}

// create creates an object with its status and UID.
func (w *world) create(obj client.Object) {
	w.Helper()
	uid := string(obj.GetUID())
	shall := obj.DeepCopyObject()
	obj.SetUID("")
	w.must(cluster.Create(w.Context(), obj))
	given := string(obj.GetUID())
	switch current := obj.(type) {
	case *corev1.Node:
		current.Status = shall.(*corev1.Node).Status
		w.must(cluster.Status().Update(w.Context(), current))
	case *corev1.Service:
		current.Status = shall.(*corev1.Service).Status
		w.must(cluster.Status().Update(w.Context(), current))
		w.restore("/registry/services/specs/"+current.Namespace+"/"+current.Name, given, uid)
		w.eventually("UID of Service "+current.Name, func() error {
			if err := cluster.Get(w.Context(), client.ObjectKeyFromObject(current), current); err != nil || string(current.UID) != uid {
				return fmt.Errorf("is %s, want %s: %w", current.UID, uid, err)
			}
			return nil
		})
	}
}

// restore gives an object its original UID, like restoring an etcd backup.
func (w *world) restore(key, given, uid string) {
	w.Helper()
	var found struct {
		KVs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	w.etcd("range", map[string]any{"key": []byte(key)}, &found)
	if len(found.KVs) != 1 || len(given) != len(uid) || !bytes.Contains(found.KVs[0].Value, []byte(given)) {
		w.Fatalf("etcd has no %s with the UID %s", key, given)
	}
	w.etcd("put", map[string]any{"key": []byte(key), "value": bytes.ReplaceAll(found.KVs[0].Value, []byte(given), []byte(uid))}, &struct{}{})
}

func (w *world) etcd(do string, args map[string]any, into any) {
	w.Helper()
	for name, value := range args {
		args[name] = base64.StdEncoding.EncodeToString(value.([]byte))
	}
	body, err := json.Marshal(args)
	w.must(err)
	res, err := http.Post(cluster.etcd+"/v3/kv/"+do, "application/json", bytes.NewReader(body))
	w.must(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		w.Fatalf("etcd: %s", res.Status)
	}
	w.must(json.NewDecoder(res.Body).Decode(into))
}

// start runs the controller for Services without a class, with the shipped roles.
func (w *world) start() *process.Process {
	w.Helper()
	free, err := process.FreeAddresses(w.Context(), 1)
	w.must(err)
	config, err := filepath.Abs(string(w.left) + "azure.json")
	w.must(err)
	p, err := process.StartCommand(w.Context(), process.Command{
		Name: "weir", Dir: w.TempDir(), Path: filepath.Join(bin, "weir"),
		Args: []string{
			"controller", "--kubeconfig", cluster.weir, "--config", config,
			"--azure-endpoint", w.url, "--load-balancer-class=", "--leader-elect-namespace", "weir-system",
			"--leader-elect-lease-duration", "40s", "--leader-elect-renew-deadline", "30s", // a busy machine does not end a leadership
			"--metrics-bind-address", free[0], "--operator-bind-address", "0", "--health-probe-bind-address", "0",
		},
	})
	w.must(err)
	w.Cleanup(func() {
		p.Kill()
		if w.Failed() {
			w.Logf("the controller's log:\n%s", p.ReadOutput())
		}
	})
	return p
}

// stop shuts it down gracefully.
func (w *world) stop(p *process.Process) {
	w.Helper()
	w.must(p.Signal(syscall.SIGTERM))
	w.must(p.Wait())
}

// weir runs another command of the program and returns its output and exit code.
func (w *world) weir(args ...string) (string, int) {
	w.Helper()
	of, err := process.RunToEnd(w.Context(), nil, filepath.Join(bin, "weir"), args...)
	w.must(err)
	return of.Stdout + of.Stderr, of.Code
}

// plan runs weir plan on the current cluster.
func (w *world) plan() (string, int) {
	w.Helper()
	return w.weir("plan", "--kubeconfig", cluster.weir, "--config", string(w.left)+"azure.json", "--azure-endpoint", w.url, "--load-balancer-class=")
}

// eventually polls until ask returns nil, and fails with the last error otherwise.
func (w *world) eventually(about string, ask func() error) {
	w.Helper()
	controlplane.Eventually(w.T, about, 5*time.Minute, ask)
}

// kubectl runs kubectl as an administrator and returns its output.
func (w *world) kubectl(args ...string) string {
	w.Helper()
	out, err := kubectl(w.Context(), args...)
	if err != nil {
		w.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}
