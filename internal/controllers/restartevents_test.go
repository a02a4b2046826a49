// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
)

var overtaken = injectedResult{status: http.StatusConflict, code: "AnotherOperationInProgress"}

// A restarted controller repeats no event. Not parallel: it restarts the shared controller.
func TestRestartRepeatsNoEvent(t *testing.T) {
	failing := map[string][]injectedResult{
		"refused": slices.Repeat([]injectedResult{refused}, 9), "spent": slices.Repeat([]injectedResult{overtaken}, 9),
		"nodes": slices.Repeat([]injectedResult{refused}, 9), "mended": {refused}, "landed": {throttled},
	}
	s := newTestEnv(t, slices.Sorted(maps.Keys(failing))...)
	s.azurePool("fence")
	s.bindFailingPools(failing)
	about := func(name string) string {
		return fmt.Sprintf("Service %v, BackendPool %v", s.countEvents("Service", name), s.countEvents("BackendPool", name))
	}
	s.waitForEvent("Service", "refused", backendpool.EventFailed, 1)
	s.waitForEvent("Service", "spent", backendpool.EventFailed, 1)
	s.waitForEvent("Service", "mended", backendpool.EventFailed, 1)
	s.waitForEvent("Service", "landed", backendpool.EventRetrying, 1)
	s.waitForEvent("BackendPool", "nodes", backendpool.EventFailed, 1)
	if err := controller.stop(); err != nil { // which writes its remaining events
		t.Fatal(err)
	}
	output, remaining := map[string]string{}, map[string]int{}
	for name := range failing {
		output[name], remaining[name] = about(name), s.remainingResults(name)
	}
	// One pool was fixed by hand, and the lost write of another had landed.
	s.azurePool("mended", s.ip(1))
	s.azurePool("landed", s.ip(1))

	var err error
	if controller, err = start(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mended", "landed"} {
		s.waitForEvent("Service", name, backendpool.EventUpdated, 1)
		s.waitForMembers(name, s.ip(1))
	}
	for _, name := range []string{"refused", "spent", "nodes"} {
		s.waitUntil(func() string {
			if s.remainingResults(name) == remaining[name] {
				return name + " is not tried again"
			}
			return ""
		})
	}
	s.bindPool("fence")
	s.waitForEvent("Service", "fence", backendpool.EventUpdated, 1)
	for _, name := range []string{"refused", "spent", "nodes"} {
		if current := about(name); current != output[name] {
			t.Errorf("%s: before the restart %s, and after it %s", name, output[name], current)
		}
		if n := remaining[name] - s.remainingResults(name); n != 1 {
			t.Errorf("%s: %d attempts, of which nobody was told", name, n)
		}
	}
	// A change is reported regardless of earlier events.
	s.changeSlice("refused", s.endpointOn(1), s.endpointOn(2))
	s.waitForEvent("Service", "refused", backendpool.EventFailed, 2)
}

func (env *testEnv) bindPool(name string) {
	env.Helper()
	env.createService(name, corev1.ServiceTypeLoadBalancer)
	env.createSlice(name, name, env.endpointOn(1))
	env.createBackendPool(name, name)
}

// bindFailingPools binds pools with injected results: nodes to the first node, each other one to a Service.
func (env *testEnv) bindFailingPools(failing map[string][]injectedResult) {
	env.Helper()
	env.createLabeledNode(1, map[string]string{"scene": env.ns})
	for name, verdicts := range failing {
		env.setWriteResults(name, verdicts...)
		if name != "nodes" {
			env.bindPool(name)
			continue
		}
		env.createBackendPool(name, "", func(spec *v1alpha1.BackendPoolSpec) {
			spec.ServiceRef = nil
			spec.Nodes = &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"scene": env.ns}}}
		})
	}
}
