// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/lab/armemu"
)

const flappingPools = 100

// endpointAttacks return whether the endpoint of a Service moves in a given second.
var endpointAttacks = []struct {
	name  string
	moves func(service, second int) bool
}{
	{"each second", func(_, _ int) bool { return true }},
	{"once a minute each", func(service, second int) bool { return service%60 == second%60 }},
}

// poolLags are the neighbor's maximum delays and the maximum writes in five minutes, over the whole
// attack and while the neighbor is active.
type poolLags struct {
	endpoint, service time.Duration
	all, active       int
	longest           time.Duration // between two writes of an attacked pool
}

// playPools moves endpoints of a namespace with many pools for six minutes. After three minutes the
// neighbor moves its own every 11 s, and finally adds a Service.
func playPools(t *testing.T, moves func(service, second int) bool) (got poolLags) {
	t.Helper()
	runStage(t, Options{Limits: armemu.AzureLimits()}, func(s *Stage) {
		for i := range 3 {
			failOn(s.AddNode(i))
		}
		s.Start()
		local := func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }
		failOn(s.AddService("blog/web", local))
		failOn(s.SetEndpoints("blog/web", map[int]bool{0: true}))
		for i := range flappingPools {
			failOn(s.AddService(fmt.Sprintf("shop/s%d", i), func(svc *corev1.Service) {
				local(svc)
				setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
			}))
		}
		failOn(s.WaitInSync(20 * time.Minute))
		s.Sleep(6 * time.Minute)
		s.emulator.ClearCalls()
		n := &neighbor{Stage: s}
		start := time.Now()
		second := func() {
			at := int(time.Since(start).Seconds())
			for i := range flappingPools {
				if moves != nil && moves(i, at) {
					failOn(s.SetEndpoints(fmt.Sprintf("shop/s%d", i), map[int]bool{(at + at/60 + i) % 3: true}))
				}
			}
		}
		last := -1
		n.attack = func(string, int) error {
			if at := int(time.Since(start).Seconds()); at != last {
				last = at
				second()
			}
			return nil
		}
		for time.Since(start) < 3*time.Minute {
			n.passTime()
		}
		active := time.Now()
		for i := 0; time.Since(start) < 6*time.Minute; i++ {
			began := time.Now()
			got.endpoint = max(got.endpoint, n.moveEndpoint((i+1)%3))
			for time.Since(began) < changeEvery {
				n.passTime()
			}
		}
		got.service = n.addService("blog/new")
		for time.Since(active) < 5*time.Minute {
			n.passTime()
		}
		writes, _ := s.writesOf()
		got.all = maxInFiveMinutes(writes)
		got.active = maxInFiveMinutes(slices.DeleteFunc(writes, func(at time.Time) bool { return at.Before(active) }))
		lasts := map[string]time.Time{}
		for _, c := range s.emulator.Calls() {
			if c.Method != http.MethodPut || c.Kind == armemu.KindPoll {
				continue
			}
			if at, known := lasts[c.Path]; known {
				got.longest = max(got.longest, c.Time.Sub(at))
			}
			lasts[c.Path] = c.Time
		}
	})
	t.Logf("%+v", got)
	return got
}

// A namespace moves the endpoints of 100 Services constantly. Weir stays within its write share,
// and the neighbor's delays at most double.
func TestAHundredPoolsOfOneNamespaceChangeAllTheTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	undisturbed := playPools(t, nil)
	for _, a := range endpointAttacks {
		t.Run(a.name, func(t *testing.T) {
			got := playPools(t, a.moves)
			if got.endpoint > maxRatio*undisturbed.endpoint {
				t.Errorf("endpoint change took %s, want at most %d times %s", got.endpoint, maxRatio, undisturbed.endpoint)
			}
			if got.service > maxRatio*undisturbed.service {
				t.Errorf("new Service took %s, want at most %d times %s", got.service, maxRatio, undisturbed.service)
			}
			if got.all > weirs {
				t.Errorf("%d writes in five minutes, %d once the neighbor is active; want %d at most", got.all, got.active, weirs)
			}
			if got.longest > schedule.MaxDeferral {
				t.Errorf("a pool waits for %s", got.longest)
			}
		})
	}
}
