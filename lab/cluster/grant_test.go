// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A pool of an unmanaged load balancer stays unchanged once its namespace loses the grant.
func TestNothingIsWrittenWithoutTheGrant(t *testing.T) {
	stage(t, Options{Configure: rarely}, func(s *Stage) {
		grant := func(to string) {
			must(s.ChangeNamespace("shop", func(n *corev1.Namespace) { n.Annotations = map[string]string{grants: to} }))
		}
		for n := range 3 {
			must(s.AddNode(n))
		}
		must(s.makeEdge())
		grant(edge)
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Endpoints("shop/web", map[int]bool{0: true, 1: true}))
		must(s.bind("shop/hand", "web", "web"))
		must(s.Settles(5 * time.Minute))
		id := network + "loadBalancers/" + edge + "/backendAddressPools/web"
		before, _ := s.emu.Get(id)
		grant("")
		s.revoked = true
		s.Pass(time.Second)
		must(s.Endpoints("shop/web", map[int]bool{2: true}))
		must(s.Settles(2 * time.Minute)) // and the status reports it
		if after, _ := s.emu.Get(id); string(after) != string(before) {
			must(fmt.Errorf("the pool was written without the grant: %s, was %s", after, before))
		}
		grant(edge)
		s.revoked = false
		must(s.Settles(2 * time.Minute))
	})
}
