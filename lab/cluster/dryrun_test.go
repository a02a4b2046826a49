// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A dry-run Service creates nothing in Azure, and its existing resources stay unchanged whatever is
// desired.
func TestADryRunChangesNothing(t *testing.T) {
	stage(t, Options{Configure: rarely}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		local := func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }
		dry := func(on string) func(*corev1.Service) {
			return func(svc *corev1.Service) { setAnnotation(svc, dryRun, on) }
		}
		for _, name := range []string{"shop/web", "shop/api"} {
			must(s.AddService(name, local))
			must(s.Endpoints(name, map[int]bool{0: true, 1: true}))
		}
		must(s.Settles(5 * time.Minute))
		before, err := s.observe()
		must(err)
		for _, name := range []string{"shop/web", "shop/api"} {
			must(s.ChangeService(name, dry("true")))
		}
		s.Pass(time.Second)
		must(s.AddService("blog/web", dry("true")))
		must(s.ChangeService("shop/web", func(svc *corev1.Service) {
			svc.Spec.Ports[0].Port++
			svc.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"}
		}))
		must(s.ChangeService("shop/api", clusterIP))
		must(s.Endpoints("shop/web", map[int]bool{2: true}))
		s.Pass(10 * time.Minute)
		after, err := s.observe()
		must(err)
		if is, was := after.lines(s.isForeign), before.lines(s.isForeign); !equalSorted(is, was) || fmt.Sprint(after.rules) != fmt.Sprint(before.rules) {
			must(fmt.Errorf("a dry run has changed what is in Azure:\n%q\n%v\nwas\n%q\n%v", is, after.rules, was, before.rules))
		}
		for _, name := range []string{"shop/web", "shop/api", "blog/web"} {
			must(s.ChangeService(name, dry("")))
		}
		must(s.Settles(5 * time.Minute))
	})
}

func equalSorted(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
