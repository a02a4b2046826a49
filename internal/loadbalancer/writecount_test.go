// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
)

// act is a change of many Services at once, with its cost.
type act struct {
	name                  string
	lbWrites, ipWrites    int
	reads                 int
	median, most, virtual time.Duration
}

// many creates Services together, changes one annotation of all, and deletes all.
func many(t *testing.T, services int) (acts []act) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		s := newStage()
		defer s.close()
		var names []string
		for i := range services {
			names = append(names, fmt.Sprintf("shop/s%04d", i))
		}
		acts = append(acts,
			s.act("created", names, func(name string) { s.apply(name, simple(), nil) }),
			s.act("changed", names, func(name string) {
				spec := simple()
				annotate(&spec, service.IdleTimeout, "15")
				s.apply(name, spec, nil)
			}),
			s.act("deleted", names, s.remove))
		if remaining := s.cloud().spell(); remaining != "nothing\n" {
			t.Errorf("left over:\n%s", remaining)
		}
	})
	return acts
}

// act changes all Services and waits until all are in sync.
func (s *stage) act(name string, names []string, do func(string)) act {
	s.emu.ClearCalls()
	start := time.Now()
	s.mu.Lock()
	s.acted, s.took = start, map[string]time.Duration{}
	s.mu.Unlock()
	for _, n := range names {
		do(n)
	}
	s.settle(2 * time.Hour)
	a := act{name: name, virtual: time.Since(start), reads: s.emu.Stats().Reads}
	for _, c := range s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)) {
		if strings.Contains(c.Resource, "/loadBalancers/") {
			a.lbWrites++
		} else {
			a.ipWrites++
		}
	}
	var lags []time.Duration
	s.mu.Lock()
	for _, d := range s.took {
		lags = append(lags, d)
	}
	s.mu.Unlock()
	slices.Sort(lags)
	if len(lags) == len(names) {
		a.median, a.most = lags[len(lags)/2], lags[len(lags)-1]
	}
	return a
}

// Services created, changed or deleted together cost few writes.
func TestManyServicesCostFewWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	const services = 300
	for _, a := range many(t, services) {
		t.Logf("%s: %d writes of the load balancer, %d of public IPs, %d reads; served after %.0f s (median), %.0f s (last)",
			a.name, a.lbWrites, a.ipWrites, a.reads, a.median.Seconds(), a.most.Seconds())
		if a.lbWrites*10 >= services || a.most == 0 {
			t.Errorf("%s: %d writes of the load balancer for %d Services, the last served after %s", a.name, a.lbWrites, services, a.most)
		}
	}
}

// BenchmarkServices reports the cost of 300 Services on one load balancer, in writes per Service and seconds of
// emulated Azure time.
func BenchmarkServices(b *testing.B) {
	const services = 300
	for b.Loop() {
		for _, a := range many(new(testing.T), services) {
			b.ReportMetric(float64(a.lbWrites)/services, a.name+"-LB-writes/Service")
			b.ReportMetric(float64(a.ipWrites)/services, a.name+"-IP-writes/Service")
			b.ReportMetric(a.median.Seconds(), a.name+"-median-s")
			b.ReportMetric(a.most.Seconds(), a.name+"-last-s")
		}
	}
}
