// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/servicelb"
)

// restriction is an edit that admits fewer clients to shop/web, and what blocks the rest of the
// update.
type restriction struct {
	about  string
	edit   func(svc *corev1.Service)
	faults []string
	reason string // of the condition Programmed meanwhile
	deaths bool
}

const admitted, stranger = "203.0.113.9", "198.51.100.9"

func restrictions() []restriction {
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
	if err := s.people.Get(ctx, split(key), svc); err != nil {
		return err
	}
	c, err := s.observe()
	all := []error{err}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		to := netip.MustParseAddr(in.IP)
		for from, may := range map[string]bool{admitted: !restricted || to.Is4(), stranger: !restricted} {
			if c.admits(netip.MustParseAddr(from), to, "Tcp", port) != may {
				all = append(all, fmt.Errorf("from %s to %s, %s at %d: want %t", from, key, to, port, may))
			}
		}
	}
	if len(svc.Status.LoadBalancer.Ingress) == 0 {
		all = append(all, fmt.Errorf("%s has no address", key))
	}
	return errors.Join(all...)
}

// play restricts shop/web while a process optionally dies at a call, and returns the number of
// calls.
func (r restriction) play(s *Stage, death int, after bool) (calls int) {
	for n := range 3 {
		must(s.AddNode(n))
	}
	must(s.PublicIP(peoplesIP("shop")))
	s.Start()
	named := func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-name", peoplesIP("shop")) }
	must(s.AddService("shop/web", func(svc *corev1.Service) { dual(svc); named(svc) }))
	must(s.AddService("shop/beside", func(svc *corev1.Service) { named(svc); svc.Spec.Ports[0].Port = 8443 }))
	must(s.Settles(5 * time.Minute))
	svc := &corev1.Service{}
	must(s.people.Get(ctx, split("shop/web"), svc))
	port := svc.Spec.Ports[0].Port
	was, err := s.publicIPs()
	must(err)
	must(s.isOpen("shop/web", port, false))
	must(s.AzureFaults(r.faults...))
	first := len(s.emu.Calls())
	s.DiesAt(death, after)
	must(s.ChangeService("shop/web", r.edit))
	s.Pass(30 * time.Second)
	calls = len(s.emu.Calls()) - first
	if death > 0 {
		s.DiesAt(0, false)
		s.Pass(2 * time.Minute)
	}
	must(s.isOpen("shop/web", port, true))
	must(s.isOpen("shop/beside", 8443, false))
	must(s.keptAddresses(was))
	if must(s.people.Get(ctx, split("shop/web"), svc)); death == 0 && reasonOf(svc) != r.reason {
		must(fmt.Errorf("it is %s, want %s", reasonOf(svc), r.reason))
	}
	s.EndFaults()
	must(s.ChangeService("shop/web", func(svc *corev1.Service) {
		delete(svc.Annotations, annotation+"azure-load-balancer-tcp-idle-timeout")
		svc.Spec.LoadBalancerSourceRanges = svc.Spec.LoadBalancerSourceRanges[:1]
	}))
	must(s.Settles(20 * time.Minute))
	must(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil }))
	must(s.Settles(20 * time.Minute))
	return calls
}

// A Service that admits fewer clients is closed to the others within seconds, whatever blocks its
// load balancer write and wherever the process dies. Nothing else changes until then.
func TestARestrictionIsInForceBeforeAllElse(t *testing.T) {
	for _, r := range restrictions() {
		t.Run(r.about, func(t *testing.T) {
			calls := 0
			stage(t, Options{}, func(s *Stage) { calls = r.play(s, 0, false) })
			if testing.Short() || t.Failed() || !r.deaths {
				return
			}
			for at := 1; at <= calls; at++ {
				for _, after := range []bool{false, true} {
					stage(t, Options{}, func(s *Stage) { r.play(s, at, after) })
					if t.Failed() {
						t.Fatalf("died at call %d of %d, after it: %t", at, calls, after)
					}
				}
			}
			t.Logf("%d calls", calls)
		})
	}
}

// reasonOf returns the reason of the condition Programmed.
func reasonOf(svc *corev1.Service) string {
	for _, c := range svc.Status.Conditions {
		if c.Type == servicelb.TypeProgrammed {
			return c.Reason
		}
	}
	return ""
}
