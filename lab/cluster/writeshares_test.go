// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/lab/armemu"
)

// Attack parameters.
const (
	editedServices = 60
	attackLasts    = 5 * time.Minute
	attackedFor    = 3 * time.Minute                    // when the neighbor adds its Service
	weirs          = int(1000 * ratelimit.DefaultShare) // writes in five minutes
	fairShare      = weirs / 2                          // of two namespaces
)

// An attack edits the Services of namespace shop once a second.
type attack struct {
	name string
	// add creates a Service, edit changes it, and faults are emulator rules.
	add    func(n int, svc *corev1.Service)
	edit   func(s *Stage, n, second int) error
	faults []string
	// most is the maximum number of writes in five minutes that the attack may cause.
	most int
	// reads is the maximum number of reads in five minutes.
	reads int
}

// badAddress is outside every subnet.
func badAddress(n, second int) string { return fmt.Sprintf("192.168.%d.%d", n, second%250) }

func internalAt(svc *corev1.Service, address string) {
	setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
	setAnnotation(svc, annotation+"azure-load-balancer-ipv4", address)
}

func attackerName(n int) string { return fmt.Sprintf("shop/bad-%d", n) }

// writesOf returns the times of all writes and deletions, and the number of reads.
func (s *Stage) writesOf() (writes []time.Time, reads int) {
	for _, c := range s.emulator.Calls() {
		switch {
		case c.Kind == armemu.KindPoll:
		case c.Method == http.MethodGet:
			reads++
		default:
			writes = append(writes, c.Time)
		}
	}
	return writes, reads
}

// maxInFiveMinutes returns the maximum number of writes in five minutes.
func maxInFiveMinutes(writes []time.Time) (limit int) {
	for i, at := range writes {
		end, _ := slices.BinarySearchFunc(writes, at.Add(5*time.Minute), time.Time.Compare)
		limit = max(limit, end-i)
	}
	return limit
}

// addressAfter returns how long the neighbor's new Service waits for its address.
func (s *Stage) addressAfter(key string) (time.Duration, error) {
	began := time.Now()
	if err := s.AddService(key, func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") }); err != nil {
		return 0, err
	}
	for time.Since(began) < 2*time.Minute {
		svc := &corev1.Service{}
		if err := s.userClient.Get(ctx, parseKey(key), svc); err != nil {
			return 0, err
		}
		if len(svc.Status.LoadBalancer.Ingress) > 0 {
			return time.Since(began), nil
		}
		s.Sleep(100 * time.Millisecond)
	}
	return time.Since(began), nil
}

// outcome is the effect of an attack.
type outcome struct {
	lag           time.Duration
	writes, reads int // of the attack, in five minutes
	all           int // maximum writes in any five minutes
}

// runAttack runs the attack, or the same time without it.
func (a attack) runAttack(t *testing.T, attacked bool) (got outcome) {
	t.Helper()
	runStage(t, Options{Limits: armemu.AzureLimits()}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("blog/first", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") }))
		failOn(s.AddService("shop/first", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") }))
		failOn(s.WaitInSync(2 * time.Minute))
		s.Sleep(6 * time.Minute)
		s.emulator.ClearCalls()
		if attacked {
			failOn(s.AzureFaults(a.faults...))
			for n := range editedServices {
				failOn(s.AddService(attackerName(n), func(svc *corev1.Service) { a.add(n, svc) }))
			}
		}
		lag := make(chan time.Duration, 1)
		for second := range int(attackLasts.Seconds()) {
			began := time.Now()
			if second == int(attackedFor.Seconds()) {
				go func() {
					d, err := s.addressAfter("blog/new")
					failOn(err)
					lag <- d
				}()
			}
			for n := range editedServices {
				if attacked {
					failOn(a.edit(s, n, second+1))
				}
			}
			time.Sleep(time.Until(began.Add(time.Second)))
		}
		got.lag = <-lag
		writes, reads := s.writesOf()
		got.writes, got.reads, got.all = len(writes), reads, maxInFiveMinutes(writes)
	})
	return got
}

// attacks are rejected by Azure, except one.
var attacks = []attack{{
	name: "rejected addresses", most: 120, reads: 1200,
	add: func(n int, svc *corev1.Service) { internalAt(svc, badAddress(n, 0)) },
	edit: func(s *Stage, n, second int) error {
		return s.ChangeService(attackerName(n), func(svc *corev1.Service) { internalAt(svc, badAddress(n, second)) })
	},
}, {
	name: "rejected addresses of Services that are created again", most: 120, reads: 1200,
	add: func(n int, svc *corev1.Service) { internalAt(svc, badAddress(n, 0)) },
	edit: func(s *Stage, n, second int) error {
		if (n+second)%4 != 0 {
			return nil
		}
		if err := s.DeleteService(attackerName(n)); err != nil && !isIgnorable(err) {
			return err
		}
		err := s.AddService(attackerName(n), func(svc *corev1.Service) { internalAt(svc, badAddress(n, second)) })
		if err != nil && isIgnorable(err) {
			return nil
		}
		return err
	},
}, {
	name: "rejected addresses on one load balancer after the other", most: fairShare, reads: 1200,
	add: func(n int, svc *corev1.Service) { internalAt(svc, badAddress(n, 0)) },
	edit: func(s *Stage, n, second int) error {
		return s.ChangeService(attackerName(n), func(svc *corev1.Service) {
			internalAt(svc, badAddress(n, second))
			if second%2 == 0 { // a label that the emulator rejects
				internalAt(svc, "")
				setAnnotation(svc, annotation+"azure-load-balancer-internal", "")
				setAnnotation(svc, annotation+"azure-pip-tags", fmt.Sprintf("a=%d", second))
			}
		})
	},
	faults: []string{"{match: {path: 'publicIPAddresses/*', kind: put}, action: {status: 403, code: RequestDisallowedByPolicy}}"},
}, {
	name: "public IPs that a policy rejects", most: 160, reads: 2000,
	add: func(_ int, svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-tags", "a=b") },
	edit: func(s *Stage, n, second int) error {
		return s.ChangeService(attackerName(n), func(svc *corev1.Service) {
			setAnnotation(svc, annotation+"azure-pip-tags", fmt.Sprintf("a=%d", second))
		})
	},
	faults: []string{"{match: {path: 'publicIPAddresses/*', kind: put}, action: {status: 403, code: RequestDisallowedByPolicy}}"},
}, {
	name: "writes that Azure accepts and that fail", most: 120, reads: 2000,
	add: func(n int, svc *corev1.Service) {},
	edit: func(s *Stage, n, second int) error {
		return s.ChangeService(attackerName(n), func(svc *corev1.Service) { svc.Spec.Ports[0].Port = int32(1000 + n + 100*(second%50)) })
	},
	faults: []string{"{match: {path: 'loadBalancers/kubernetes', kind: put}, action: {operation: {fail: {code: InvalidParameter, message: rejected}}}}"},
}, {
	name: "valid changes", most: 4*weirs/5 + 5, reads: 2000, // allowed while no other namespace waits
	add: func(n int, svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-tags", "a=b") },
	edit: func(s *Stage, n, second int) error {
		return s.ChangeService(attackerName(n), func(svc *corev1.Service) {
			setAnnotation(svc, annotation+"azure-pip-tags", fmt.Sprintf("a=%d", second))
		})
	},
}}

// A namespace edits its Services constantly. The neighbor's new Service has its address within
// twice the undisturbed time, and writes stay within their limits.
func TestANamespaceThatEditsAllTheTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	undisturbed := attack{}.runAttack(t, false)
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			attacked := a.runAttack(t, true)
			caused := attacked.writes - undisturbed.writes
			t.Logf("undisturbed: %+v; attacked: %+v; %d writes of the attack", undisturbed, attacked, caused)
			if attacked.lag > 2*undisturbed.lag {
				t.Errorf("the neighbor waits %s for its address, %s without the attack", attacked.lag, undisturbed.lag)
			}
			if attacked.all > weirs {
				t.Errorf("%d writes in five minutes", attacked.all)
			}
			if caused > a.most {
				t.Errorf("the attack causes %d writes in five minutes, want %d at most", caused, a.most)
			}
			if attacked.reads-undisturbed.reads > a.reads {
				t.Errorf("the attack causes %d reads in five minutes, want %d at most", attacked.reads-undisturbed.reads, a.reads)
			}
		})
	}
}
