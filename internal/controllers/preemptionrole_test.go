// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/internal/controllers/nodes"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
)

// replaceController replaces the shared controller until the test ends.
func (env *testEnv) replaceController(cfg *rest.Config, draining *lb.DrainSignals, meanwhile func()) {
	env.Helper()
	must := func(err error) {
		env.Helper()
		if err != nil {
			env.Fatal(err)
		}
	}
	must(controller.stop())
	meanwhile()
	var err error
	controller, err = startController(cfg, nil, draining)
	must(err)
	env.Cleanup(func() {
		must(controller.stop())
		controller, err = start()
		must(err)
	})
}

// A new process reads draining nodes from taints, and processed nodes from records: it ignores
// their existing events.
func TestARestartPutsNoTaintBack(t *testing.T) {
	s := newTestEnv(t)
	for n := range 4 {
		s.createNode(n + 1)
		s.createEviction(n+1, fmt.Sprintf("evicts-%d", n+1))
		s.waitForTaints(n+1, spotTaint)
	}
	s.replaceController(cluster.Config, signals(), func() {
		s.setTaints(1) // removed by an operator
		s.setTaints(2)
		s.repeatEviction("evicts-2") // before or after the removal: unknown
		s.setTaints(3, outTaint)
		s.createNode(5)
		s.createEviction(5, "evicts-5")
	})
	s.waitForTaints(5, spotTaint)
	s.waitForDraining(3, "out-of-service")
	s.waitForDraining(4, "spot-eviction")
	s.waitForEvents() // newer than the initial list, but possibly queued before it
	s.touchEvent("evicts-1")
	s.touchEvent("evicts-2")
	s.waitForEvents()
	s.waitForTaints(1, "")
	s.waitForTaints(2, "")
	s.waitForDraining(1, "")
	s.repeatEviction("evicts-2")
	s.waitForTaints(2, spotTaint)
	s.waitForTaints(3, outTaint)
}

type requestRecorder struct {
	mu    sync.Mutex
	about map[string]int
}

func (r *requestRecorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/api/v1/"), "/")
		if parts[0] == "namespaces" && len(parts) > 2 {
			parts = parts[2:]
		}
		r.mu.Lock()
		r.about[req.Method+" "+parts[0]]++
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

func (r *requestRecorder) sent(about string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.about[about]
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

func shippedConfig(r *requestRecorder) *rest.Config {
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate.UserName, cfg.Impersonate.Groups = "system:serviceaccount:weir-system:weir", []string{"system:authenticated"}
	cfg.Wrap(r.wrap)
	return cfg
}

func (env *testEnv) applyRoles(path string) {
	env.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		env.Fatal(err)
	}
	scheme := metadata.Scheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		env.Fatal(err)
	}
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		env.Fatal(err)
	}
	for i, part := range strings.Split(string(raw), "\n---\n") {
		obj := []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}}[i]
		if strings.Contains(part, "\nkind: Role") {
			obj = []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}}[i]
		}
		if err := yaml.UnmarshalStrict([]byte(part), obj); err != nil {
			env.Fatal(err)
		}
		if err := admin.Create(env.Context(), obj); err != nil {
			env.Fatal(err)
		}
		env.Cleanup(func() { _ = admin.Delete(context.Background(), obj) })
	}
}

func (env *testEnv) waitForPool(name string) {
	env.Helper()
	env.createService(name, corev1.ServiceTypeLoadBalancer)
	env.createSlice(name, name, env.endpointOn(1))
	env.createBackendPool(name, name)
	env.waitForMembers(name, env.ip(1))
}

// With the setting disabled, no request needs the role of config/admin-state, and taints are
// ignored.
func TestOffNeedsNoRole(t *testing.T) {
	s := newTestEnv(t, "web")
	s.createNode(1)
	s.applyRoles("../../config/rbac/cluster-role.yaml")
	r := &requestRecorder{about: map[string]int{}}
	s.replaceController(shippedConfig(r), nil, func() { s.setTaints(1, outTaint) })
	s.createEviction(1, "evicts")
	s.waitForPool("web")
	if n := r.sent("GET events") + r.sent("PATCH nodes"); n != 0 {
		t.Errorf("%v", r.about)
	}
	if r.sent("GET nodes") == 0 {
		t.Errorf("not even nodes were listed: %v", r.about)
	}
	s.waitForTaints(1, outTaint)
	if drains := controller.kube.Draining.Reasons(s.node(1)); drains != nil || len(controller.kube.Draining.CountByReason()) != 0 || s.evictionRecord(1) != "" {
		t.Errorf("drains %v, %v, note %q", drains, controller.kube.Draining.CountByReason(), s.evictionRecord(1))
	}
}

// Without the role everything else works. Once it exists, earlier announcements are processed.
func TestOnWithoutTheRole(t *testing.T) {
	s := newTestEnv(t, "web")
	s.createNode(1)
	s.createNode(2)
	s.applyRoles("../../config/rbac/cluster-role.yaml")
	r := &requestRecorder{about: map[string]int{}}
	s.replaceController(shippedConfig(r), signals(), func() { s.setTaints(2, outTaint) })
	s.createEviction(1, "evicts")
	s.waitForPool("web")
	s.waitForDraining(2, "out-of-service")
	s.waitUntil(func() string {
		if r.sent("GET events") < 2 {
			return fmt.Sprintf("it does not try to list events: %v", r.about)
		}
		return ""
	})
	if r.sent("PATCH nodes") != 0 || s.evictionRecord(1) != "" {
		t.Errorf("it has seen the event: %v", r.about)
	}
	s.applyRoles("../../config/admin-state/cluster-role.yaml")
	s.applyRoles("../../config/admin-state/role.yaml")
	s.waitForTaints(1, spotTaint)
	s.waitForNodeEvent(1, nodes.EventTainted, 1)
	began := time.Now()
	s.createEviction(2, "evicts-2")
	s.waitForTaints(2, outTaint+" "+spotTaint)
	t.Logf("from the event to the taint: at most %s", time.Since(began).Round(time.Millisecond))
	s.waitUntil(func() string { // until the API server applies it
		if got := controller.kube.Draining.CountByReason(); got["spot-eviction"] < 2 || got["out-of-service"] < 1 || len(got) != 4 {
			return fmt.Sprintf("counted %v", got)
		}
		return ""
	})
}
