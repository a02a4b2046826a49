// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

// A Service's own pool stays for what others have put into it when the Service gives its load balancer
// up; Weir's own addresses leave it.
func TestWeirsAddressesLeaveAPoolThatStaysForOthers(t *testing.T) {
	for name, gives := range map[string]func(s *Stage){
		"it is deleted": func(s *Stage) { must(s.DeleteService("shop/web")) },
		"its dependents are deleted with it": func(s *Stage) {
			must(s.DeleteService("shop/web"))
			s.Pass(time.Second)
			must(s.people.Delete(ctx, &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.kubernetes"}}))
		},
		"its type changes": func(s *Stage) { must(s.ChangeService("shop/web", clusterIP)) },
		"the process dies while it gives it up": func(s *Stage) {
			must(s.DeleteService("shop/web"))
			s.Pass(15 * time.Second) // the load balancer is written
			s.replicas[0].stop()
			s.replicas[0].start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, Options{}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/other", nil))
				must(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				must(s.Endpoints("shop/web", map[int]bool{0: true, 1: true}))
				must(s.Settles(10 * time.Minute))
				must(s.AddForeign("kubernetes/shop-web", "10.0.9.1"))
				gives(s)
				must(s.Settles(10 * time.Minute))
				s.Pass(settled)
				must(s.Rests(400))
			})
		})
	}
}
