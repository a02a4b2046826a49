// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers/services/servicelb"
)

// Endpoints become members at once, not at the next drift read.
func TestEndpointEventsArrive(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		for n := range 3 {
			failOn(s.SetEndpoints("shop/web", map[int]bool{n: true}))
			failOn(s.WaitInSync(2 * time.Minute))
			s.Sleep(time.Minute)
		}
		for n := range 3 {
			failOn(s.SetEndpoints("shop/web", map[int]bool{n: true}))
			failOn(s.WaitInSync(30 * time.Second))
		}
	})
}

// A Service with traffic to node ports allows it at nodes behind another load balancer too, because
// its own pool contains them.
func TestALocalServiceIsOpenAtNodesBehindAnotherLoadBalancer(t *testing.T) {
	twins := func(c *config.Config) {
		c.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, {Name: secondName}}
	}
	runStage(t, Options{Configure: twins}, func(s *Stage) {
		for n := range 2 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", func(svc *corev1.Service) {
			setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
			setAnnotation(svc, annotation+"azure-disable-load-balancer-floating-ip", "true")
		}))
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		failOn(s.WaitInSync(2 * time.Minute))
	})
}

// A Service reports missing endpoints after a while and their return at once; faster changes are
// not written.
func TestAServiceThatNothingAnswersFor(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		// A security group without effect would be reported first.
		failOn(s.emulator.Put(vnetID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/48"]},"subnets":[
			{"name":"nodes","properties":{"addressPrefixes":["10.0.0.0/16","fd00::/64"],"networkSecurityGroup":{"id":"`+securityGroup+`"}}}]}}`)))
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
		failOn(s.WaitInSync(2 * time.Minute))
		s.Sleep(settleTime)
		svc := &corev1.Service{}
		want := func(after time.Duration, reason string, written bool) {
			t.Helper()
			before := svc.ResourceVersion
			s.Sleep(after)
			failOn(s.userClient.Get(ctx, parseKey("shop/web"), svc))
			c := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeProgrammed)
			if c == nil || c.Reason != reason || (svc.ResourceVersion != before) != written {
				t.Errorf("%+v, from version %s to %s; want %s, written %t", c, before, svc.ResourceVersion, reason, written)
			}
		}
		want(0, servicelb.ConditionReasonProgrammed, true)
		for range 10 {
			failOn(s.SetEndpoints("shop/web", map[int]bool{0: false}))
			want(20*time.Second, servicelb.ConditionReasonProgrammed, false)
			failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
			want(20*time.Second, servicelb.ConditionReasonProgrammed, false)
		}
		failOn(s.SetEndpoints("shop/web", map[int]bool{}))
		want(29*time.Second, servicelb.ConditionReasonProgrammed, false)
		want(2*time.Second, servicelb.ConditionReasonNoEndpoints, true)
		want(10*time.Minute, servicelb.ConditionReasonNoEndpoints, false)
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
		want(2*time.Second, servicelb.ConditionReasonProgrammed, true)
	})
}

// After a load balancer is deleted, a change of one Service recreates it with all its Services,
// before the next drift read.
func TestALoadBalancerThatIsMadeAgainHasAllOfIt(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		for _, key := range []string{"shop/db", "shop/queue", "blog/db"} {
			failOn(s.AddService(key, func(svc *corev1.Service) {
				setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
				if key == "shop/db" {
					setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
				}
			}))
			failOn(s.SetEndpoints(key, map[int]bool{0: true}))
		}
		failOn(s.WaitInSync(2 * time.Minute))
		s.Sleep(settleTime)
		failOn(s.deleteResource(network + "loadBalancers/" + clusterName + "-internal"))
		s.Sleep(10 * time.Second)
		failOn(s.SetEndpoints("shop/db", map[int]bool{1: true}))
		failOn(s.WaitInSync(20 * time.Second))
	})
}
