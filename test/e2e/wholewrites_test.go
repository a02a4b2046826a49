// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/lab/armemu"
)

// Azure's handling of whole load balancer writes is detected once, with a write that is needed
// anyway. The next process reads it from the ConfigMap; metrics show it, too.
func TestWholeWritesAreFoundOutOnce(t *testing.T) {
	runParallel(t)
	for _, azure := range []behaviour.Result{behaviour.Ignored, behaviour.Accepted} {
		t.Run(string(azure), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, armemu.Options{Behavior: behaviour.Behavior{UpdateAddresses: azure, UpdateAdminStates: azure}})
			n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
			var pools []string
			for i := range 8 {
				pools = append(pools, fmt.Sprintf("web-%d", i))
				l.service(pools[i], n1)
			}
			l.pools(pools...)
			weir := l.controller("--leader-elect=false")
			for _, p := range pools {
				l.becomes(p, "10.0.0.1")
				l.expectEvents(p, "LoadBalancerBackendPoolUpdated")
			}
			l.eventually("the record", func() error {
				var m corev1.ConfigMap
				err := l.cluster.Get(t.Context(), key("weir-system", "weir-controller"), &m)
				if err == nil && (m.Data["cluster-name"] == "" || !strings.Contains(m.Data["whole-writes"], fmt.Sprintf(`"answer": %q`, azure))) {
					err = fmt.Errorf("says %q", m.Data)
				}
				return err
			})
			l.eventually("the metric", func() error {
				body, err := get(weir.metrics, "/metrics")
				if err == nil && !strings.Contains(body, fmt.Sprintf(`weir_whole_writes{changes="addresses",verdict=%q} 1`, azure)) {
					err = errors.New("not there")
				}
				return err
			})
			if log := weir.ReadOutput(); strings.Count(log, "for its pools") != 1 {
				t.Errorf("the log does not say once how pools are written:\n%s", log)
			}

			weir.Kill()
			before := l.wholeWrites()
			weir = l.controller() // after its election
			l.eventually("it knows", func() error {
				if !strings.Contains(weir.ReadOutput(), "Azure was seen to ") {
					return errors.New("its log does not say so")
				}
				return nil
			})
			for _, p := range pools {
				l.move(p, n2)
			}
			for _, p := range pools {
				l.becomes(p, "10.0.0.2")
			}
			switch made := l.wholeWrites() - before; {
			case azure == behaviour.Ignored && made > 0:
				t.Errorf("%d writes of the load balancer after it was found out that they are ignored", made)
			case azure == behaviour.Accepted && made == 0:
				t.Error("no write of the load balancer, though Azure takes them")
			}
		})
	}
}

// pools creates the load balancer with empty pools.
func (l *lab) pools(names ...string) {
	l.t.Helper()
	all := []any{}
	for _, name := range names {
		all = append(all, map[string]any{"name": name, "properties": map[string]any{"virtualNetwork": map[string]any{"id": vnet}}})
	}
	body, err := json.Marshal(map[string]any{
		"location": "eastus", "sku": map[string]any{"name": "Standard"}, "properties": map[string]any{"frontendIPConfigurations": []any{map[string]any{"name": "theirs"}}, "backendAddressPools": all},
	})
	l.must(err)
	l.must(l.emulator.Put(l.loadBalancer(), body))
}

// wholeWrites counts the writes of the load balancer.
func (l *lab) wholeWrites() int {
	n := 0
	for _, c := range l.emulator.Calls() {
		if c.Kind == armemu.KindPut && strings.EqualFold(c.Path, l.loadBalancer()) {
			n++
		}
	}
	return n
}
