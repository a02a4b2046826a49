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
	runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		local := func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }
		dry := func(on string) func(*corev1.Service) {
			return func(svc *corev1.Service) { setAnnotation(svc, dryRun, on) }
		}
		for _, name := range []string{"shop/web", "shop/api"} {
			failOn(s.AddService(name, local))
			failOn(s.SetEndpoints(name, map[int]bool{0: true, 1: true}))
		}
		failOn(s.WaitInSync(5 * time.Minute))
		before, err := s.readAzure()
		failOn(err)
		for _, name := range []string{"shop/web", "shop/api"} {
			failOn(s.ChangeService(name, dry("true")))
		}
		s.Sleep(time.Second)
		failOn(s.AddService("blog/web", dry("true")))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) {
			svc.Spec.Ports[0].Port++
			svc.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"}
		}))
		failOn(s.ChangeService("shop/api", setClusterIPType))
		failOn(s.SetEndpoints("shop/web", map[int]bool{2: true}))
		s.Sleep(10 * time.Minute)
		after, err := s.readAzure()
		failOn(err)
		if got, old := after.formatLines(s.isForeign), before.formatLines(s.isForeign); !equalSorted(got, old) || fmt.Sprint(after.rules) != fmt.Sprint(before.rules) {
			failOn(fmt.Errorf("a dry run has changed what is in Azure:\n%q\n%v\nwas\n%q\n%v", got, after.rules, old, before.rules))
		}
		for _, name := range []string{"shop/web", "shop/api", "blog/web"} {
			failOn(s.ChangeService(name, dry("")))
		}
		failOn(s.WaitInSync(5 * time.Minute))
	})
}

func equalSorted(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
