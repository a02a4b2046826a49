// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A pool of an unmanaged load balancer is not changed once its namespace loses the grant.
func TestNothingIsWrittenWithoutTheGrant(t *testing.T) {
	runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
		grant := func(to string) {
			failOn(s.ChangeNamespace("shop", func(n *corev1.Namespace) { n.Annotations = map[string]string{grantAnnotation: to} }))
		}
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		failOn(s.createUnmanaged())
		grant(unmanagedName)
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		failOn(s.bindPool("shop/hand", "web", "web"))
		failOn(s.WaitInSync(5 * time.Minute))
		id := network + "loadBalancers/" + unmanagedName + "/backendAddressPools/web"
		before, _ := s.emulator.Get(id)
		grant("")
		s.grantRevoked = true
		s.Sleep(time.Second)
		failOn(s.SetEndpoints("shop/web", map[int]bool{2: true}))
		failOn(s.WaitInSync(2 * time.Minute)) // and the status reports it
		if after, _ := s.emulator.Get(id); string(after) != string(before) {
			failOn(fmt.Errorf("the pool was written without the grant: %s, was %s", after, before))
		}
		grant(unmanagedName)
		s.grantRevoked = false
		failOn(s.WaitInSync(2 * time.Minute))
	})
}
