// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// API requests for a new Service, without events: no read, and one write each for the record, the
// progress and the result. Its own pool adds three.
func TestANewServiceCostsThreeWrites(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/first", func(*corev1.Service) {})) // creates the load balancer and the node pools
		failOn(s.WaitInSync(2 * time.Minute))
		s.Sleep(2 * time.Minute)
		service := []string{"patch services", "patch services/status", "patch services/status"}
		pool := []string{"create backendpools", "apply backendpools/status", "apply backendpools/status"}
		for _, tt := range []struct {
			name   string
			policy corev1.ServiceExternalTrafficPolicy
			want   []string
		}{
			{"shop/cluster", corev1.ServiceExternalTrafficPolicyCluster, service},
			{"shop/local", corev1.ServiceExternalTrafficPolicyLocal, append(pool, service...)},
		} {
			before := len(s.api.Log())
			failOn(s.AddService(tt.name, func(svc *corev1.Service) { setPolicy(svc, tt.policy) }))
			failOn(s.SetEndpoints(tt.name, map[int]bool{0: true}))
			failOn(s.WaitInSync(2 * time.Minute))
			s.Sleep(2 * time.Minute)
			var requested []string
			for _, r := range s.api.Log()[before:] {
				if r.Client != "people" && r.Verb != "watch" && r.Resource != "leases" && r.Resource != "events" {
					requested = append(requested, r.Verb+" "+r.Resource)
				}
			}
			slices.Sort(requested)
			slices.Sort(tt.want)
			if !slices.Equal(requested, tt.want) {
				t.Errorf("%s: %q, want %q", tt.name, requested, tt.want)
			}
		}
	})
}
