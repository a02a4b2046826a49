// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
)

// disableDrift sets a drift period of one day, so that only events trigger changes.
func disableDrift(c *config.Config) {
	day := int((24 * time.Hour).Seconds())
	c.DriftSeconds = &day
}

// A deleted BackendPool is recreated at once, for all nodes and for a Service.
func TestDeletedBackendPoolIsRecreated(t *testing.T) {
	for about, pools := range map[string][]string{
		"of all nodes":             {"weir-system/nodes.kubernetes"},
		"a Service's own":          {"shop/api.kubernetes"},
		"both of one Service":      {"shop/both.kubernetes", "shop/both.kubernetes.ipv6"},
		"all that there are":       {"shop/api.kubernetes", "shop/both.kubernetes", "shop/both.kubernetes.ipv6", "weir-system/nodes.kubernetes"},
		"all, the nodes' at first": {"weir-system/nodes.kubernetes", "shop/both.kubernetes.ipv6", "shop/both.kubernetes", "shop/api.kubernetes"},
	} {
		t.Run(about, func(t *testing.T) {
			runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				s.Start()
				local := func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }
				failOn(s.AddService("shop/web", nil))
				failOn(s.AddService("shop/api", local))
				failOn(s.AddService("shop/both", func(svc *corev1.Service) {
					local(svc)
					svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
				}))
				for _, name := range []string{"shop/web", "shop/api", "shop/both"} {
					failOn(s.SetEndpoints(name, map[int]bool{0: true, 1: true}))
				}
				failOn(s.WaitInSync(5 * time.Minute))
				for _, pool := range pools {
					failOn(s.DeletePool(pool))
				}
				s.Sleep(30 * time.Second)
				failOn(s.ChangeNode(2, func(n *corev1.Node) { n.Labels[corev1.LabelNodeExcludeBalancers] = "" }))
				failOn(s.SetEndpoints("shop/api", map[int]bool{1: true}))
				failOn(s.SetEndpoints("shop/both", map[int]bool{1: true}))
				failOn(s.WaitInSync(2 * time.Minute))
			})
		})
	}
}
