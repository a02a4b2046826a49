// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
)

var overtaken = verdict{status: http.StatusConflict, code: "AnotherOperationInProgress"}

// A restarted controller repeats no event. Not parallel: it restarts the shared controller.
func TestARestartTellsNothingTwice(t *testing.T) {
	failing := map[string][]verdict{
		"refused": slices.Repeat([]verdict{refused}, 9), "spent": slices.Repeat([]verdict{overtaken}, 9),
		"nodes": slices.Repeat([]verdict{refused}, 9), "mended": {refused}, "landed": {throttled},
	}
	s := newScene(t, slices.Sorted(maps.Keys(failing))...)
	s.azurePool("fence")
	s.fail(failing)
	about := func(name string) string {
		return fmt.Sprintf("Service %v, BackendPool %v", s.events("Service", name), s.events("BackendPool", name))
	}
	s.wasTold("Service", "refused", backendpool.EventFailed, 1)
	s.wasTold("Service", "spent", backendpool.EventFailed, 1)
	s.wasTold("Service", "mended", backendpool.EventFailed, 1)
	s.wasTold("Service", "landed", backendpool.EventRetrying, 1)
	s.wasTold("BackendPool", "nodes", backendpool.EventFailed, 1)
	if err := controller.stop(); err != nil { // which writes its remaining events
		t.Fatal(err)
	}
	said, left := map[string]string{}, map[string]int{}
	for name := range failing {
		said[name], left[name] = about(name), s.unmet(name)
	}
	// One pool was fixed by hand, and the lost write of another had landed.
	s.azurePool("mended", s.ip(1))
	s.azurePool("landed", s.ip(1))

	var err error
	if controller, err = start(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mended", "landed"} {
		s.wasTold("Service", name, backendpool.EventUpdated, 1)
		s.holds(name, s.ip(1))
	}
	for _, name := range []string{"refused", "spent", "nodes"} {
		s.until(func() string {
			if s.unmet(name) == left[name] {
				return name + " is not tried again"
			}
			return ""
		})
	}
	s.serves("fence")
	s.wasTold("Service", "fence", backendpool.EventUpdated, 1)
	for _, name := range []string{"refused", "spent", "nodes"} {
		if now := about(name); now != said[name] {
			t.Errorf("%s: before the restart %s, and after it %s", name, said[name], now)
		}
		if n := left[name] - s.unmet(name); n != 1 {
			t.Errorf("%s: %d attempts, of which nobody was told", name, n)
		}
	}
	// A change is reported regardless of earlier events.
	s.changeSlice("refused", s.on(1), s.on(2))
	s.wasTold("Service", "refused", backendpool.EventFailed, 2)
}

func (s *scene) serves(name string) {
	s.Helper()
	s.hasService(name, corev1.ServiceTypeLoadBalancer)
	s.hasSlice(name, name, s.on(1))
	s.binds(name, name)
}

// fail binds pools with injected results: nodes to the first node, each other one to a Service.
func (s *scene) fail(failing map[string][]verdict) {
	s.Helper()
	s.hasLabelledNode(1, map[string]string{"scene": s.ns})
	for name, verdicts := range failing {
		s.meets(name, verdicts...)
		if name != "nodes" {
			s.serves(name)
			continue
		}
		s.binds(name, "", func(spec *v1alpha1.BackendPoolSpec) {
			spec.ServiceRef = nil
			spec.Nodes = &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"scene": s.ns}}}
		})
	}
}
