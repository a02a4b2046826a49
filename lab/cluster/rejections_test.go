// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/armemu"
)

// Two minutes of rejections cost few writes and few aggregated Warning events, although every
// rejection has another request id.
func TestARepeatedRejectionIsOneEvent(t *testing.T) {
	for _, tt := range []struct {
		about, path string
		configure   Options
	}{
		{"load balancer", "loadBalancers/*", Options{}},
		{"public IP", "publicIPAddresses/*", Options{}},
		{"pool", "loadBalancers/*/backendAddressPools/*", Options{}},
		{"network interface", "networkInterfaces/*", Options{Configure: useInterfaces}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			runStage(t, tt.configure, func(s *Stage) {
				failOn(s.AddNode(0))
				s.Start()
				failOn(s.AddService("shop/first", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				failOn(s.SetEndpoints("shop/first", map[int]bool{0: true}))
				failOn(s.WaitInSync(5 * time.Minute))
				s.Sleep(5 * time.Minute)
				failOn(s.AzureFaults(fmt.Sprintf("{name: reject, match: {path: '%s', kind: put}, action: {status: 400, code: NotThisTime, message: broken}}", tt.path)))
				for n := 1; n < 4; n++ {
					failOn(s.AddNode(n))
				}
				failOn(s.SetEndpoints("shop/first", map[int]bool{0: true, 1: true}))
				if tt.about == "load balancer" || tt.about == "public IP" {
					failOn(s.AddService("shop/second", nil))
				}
				s.Sleep(2 * time.Minute)
				rejected := 0
				for _, c := range s.emulator.Calls(armemu.ByKind(armemu.KindPut)) {
					if c.Status == 400 {
						rejected++
					}
				}
				f, err := s.readObjects()
				failOn(err)
				warnings := map[string]int{}
				for _, e := range f.events {
					if e.Type == corev1.EventTypeWarning {
						warnings[e.InvolvedObject.Kind+" "+e.InvolvedObject.Name+" "+e.Reason]++
					}
				}
				if rejected == 0 || rejected > 6 {
					t.Errorf("%d rejected writes", rejected)
				}
				for of, n := range warnings {
					if n > 1 {
						t.Errorf("%d events %s", n, of)
					}
				}
			})
		})
	}
}
