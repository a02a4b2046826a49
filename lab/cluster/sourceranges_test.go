// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/services/servicelb"
)

// restriction is an edit that admits fewer clients to shop/web, and what blocks the rest of the
// update.
type restriction struct {
	about  string
	edit   func(svc *corev1.Service)
	faults []string
	reason string // of the condition Programmed until then
	deaths bool
}

const admitted, stranger = "203.0.113.9", "198.51.100.9"

func accessRestrictions() []restriction {
	ranges := func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"} }
	moves := func(svc *corev1.Service) { ranges(svc); svc.Spec.Ports[0].Port = 8081 }
	answers := func(answer string) []string {
		return []string{`{match: {method: PUT, path: "` + network + `loadBalancers/*"}, action: {` + answer + `}}`}
	}
	return []restriction{
		{about: "invalid", deaths: true, reason: servicelb.ConditionReasonNotAccepted, edit: func(svc *corev1.Service) {
			ranges(svc)
			svc.Spec.LoadBalancerSourceRanges = append(svc.Spec.LoadBalancerSourceRanges, "198.51.100.9/24")
			setAnnotation(svc, annotation+"azure-load-balancer-tcp-idle-timeout", "3")
		}},
		{about: "rejected", deaths: true, reason: servicelb.ConditionReasonFailed, edit: moves, faults: answers("status: 400, code: QuotaExceeded")},
		{about: "forbidden", reason: servicelb.ConditionReasonFailed, edit: moves, faults: answers("status: 403, code: AuthorizationFailed")},
		{about: "locked", reason: servicelb.ConditionReasonFailed, edit: moves, faults: answers("status: 409, code: ScopeLocked")},
		{about: "throttled", reason: servicelb.ConditionReasonRetryAfter, edit: moves, faults: answers(`status: 429, code: TooManyRequests, headers: {Retry-After: "600"}`)},
	}
}

// isOpen returns an error unless the security group admits everyone to a Service or, if restricted,
// its ranges only.
func (s *Stage) isOpen(key string, port int32, restricted bool) error {
	svc := &corev1.Service{}
	if err := s.userClient.Get(ctx, parseKey(key), svc); err != nil {
		return err
	}
	c, err := s.readAzure()
	errs := []error{err}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		to := netip.MustParseAddr(in.IP)
		for from, may := range map[string]bool{admitted: !restricted || to.Is4(), stranger: !restricted} {
			if c.isAllowed(netip.MustParseAddr(from), to, "Tcp", port) != may {
				errs = append(errs, fmt.Errorf("from %s to %s, %s at %d: want %t", from, key, to, port, may))
			}
		}
	}
	if len(svc.Status.LoadBalancer.Ingress) == 0 {
		errs = append(errs, fmt.Errorf("%s has no address", key))
	}
	return errors.Join(errs...)
}

// runAttack restricts shop/web while a process optionally dies at a call, and returns the number of
// calls.
func (r restriction) runAttack(s *Stage, death int, after bool) (calls int) {
	for n := range 3 {
		failOn(s.AddNode(n))
	}
	failOn(s.CreatePublicIP(namespaceIPName("shop")))
	s.Start()
	named := func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-name", namespaceIPName("shop")) }
	failOn(s.AddService("shop/web", func(svc *corev1.Service) { setDualStack(svc); named(svc) }))
	failOn(s.AddService("shop/beside", func(svc *corev1.Service) { named(svc); svc.Spec.Ports[0].Port = 8443 }))
	failOn(s.WaitInSync(5 * time.Minute))
	svc := &corev1.Service{}
	failOn(s.userClient.Get(ctx, parseKey("shop/web"), svc))
	port := svc.Spec.Ports[0].Port
	before, err := s.publicIPs()
	failOn(err)
	failOn(s.isOpen("shop/web", port, false))
	failOn(s.AzureFaults(r.faults...))
	first := len(s.emulator.Calls())
	s.KillAtRequest(death, after)
	failOn(s.ChangeService("shop/web", r.edit))
	s.Sleep(30 * time.Second)
	calls = len(s.emulator.Calls()) - first
	if death > 0 {
		s.KillAtRequest(0, false)
		s.Sleep(2 * time.Minute)
	}
	failOn(s.isOpen("shop/web", port, true))
	failOn(s.isOpen("shop/beside", 8443, false))
	failOn(s.keptAddresses(before))
	if failOn(s.userClient.Get(ctx, parseKey("shop/web"), svc)); death == 0 && programmedReason(svc) != r.reason {
		failOn(fmt.Errorf("it is %s, want %s", programmedReason(svc), r.reason))
	}
	s.EndFaults()
	failOn(s.ChangeService("shop/web", func(svc *corev1.Service) {
		delete(svc.Annotations, annotation+"azure-load-balancer-tcp-idle-timeout")
		svc.Spec.LoadBalancerSourceRanges = svc.Spec.LoadBalancerSourceRanges[:1]
	}))
	failOn(s.WaitInSync(20 * time.Minute))
	failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil }))
	failOn(s.WaitInSync(20 * time.Minute))
	return calls
}

// A Service that admits fewer clients is closed to the others within seconds, whatever blocks its
// load balancer write and wherever the process dies. Nothing else changes until then.
func TestARestrictionIsInForceBeforeAllElse(t *testing.T) {
	for _, r := range accessRestrictions() {
		t.Run(r.about, func(t *testing.T) {
			calls := 0
			runStage(t, Options{}, func(s *Stage) { calls = r.runAttack(s, 0, false) })
			if testing.Short() || t.Failed() || !r.deaths {
				return
			}
			for at := 1; at <= calls; at++ {
				for _, after := range []bool{false, true} {
					runStage(t, Options{}, func(s *Stage) { r.runAttack(s, at, after) })
					if t.Failed() {
						t.Fatalf("died at call %d of %d, after it: %t", at, calls, after)
					}
				}
			}
			t.Logf("%d calls", calls)
		})
	}
}

func programmedReason(svc *corev1.Service) string {
	for _, c := range svc.Status.Conditions {
		if c.Type == servicelb.TypeProgrammed {
			return c.Reason
		}
	}
	return ""
}
