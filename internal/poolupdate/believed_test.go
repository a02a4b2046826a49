// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolattempt"
	"weir.dev/weir/internal/wholewrite"
)

// echo is an Azure that ignores pools in load balancer writes but echoes them in its response. The
// read after the first write fails.
type echo struct {
	*whole
	puts, broken int
}

func (e *echo) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	if e.puts == 1 && e.broken == 0 {
		e.broken++
		return lb.LoadBalancer{}, fault.Classify(fault.Failure{Status: 503}, errors.New("503"))
	}
	return e.whole.GetLoadBalancer(ctx, id)
}

func (e *echo) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	e.puts++
	shown, err := e.whole.PutLoadBalancer(ctx, b)
	for i := range shown.Pools {
		for _, p := range b.Pools {
			if p.ID.Name == shown.Pools[i].ID.Name {
				shown.Pools[i].Addresses = p.Addresses
			}
		}
	}
	return shown, err
}

func TestAnAnswerThatNobodyReadBackIsNotBelieved(t *testing.T) {
	inWholeWorldOf(t, 3, func(c *Config) { c.BatchSetting = wholewrite.Always }, func(w *whole, pools []lb.PoolID) {
		w.ignores = true
		e := &echo{whole: w}
		w.lanes.cfg.LoadBalancers = e
		w.all(pools, "n1=10.0.0.1")
		w.wait(2 * time.Minute)
		if e.broken != 1 {
			t.Fatalf("%d reads failed: that is another story", e.broken)
		}
		for _, id := range pools {
			if got := w.entries(id); got != "n1=10.0.0.1 vm=10.9.9.9" {
				t.Errorf("%s holds %q", id.Name, got)
			}
		}
		if w.lanes.capabilities.IsSupported(pools[0].LoadBalancer.SubscriptionID, []wholewrite.Change{wholewrite.Addresses}) {
			t.Error("Azure is taken for one that takes whole writes")
		}
	})
}

// A pool that another client keeps Updating, possibly after Weir's own write, blocks its worker for
// a few intervals at most.
func TestAnEchoKeepsTheLaneForSomeIntervalsAtMost(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		w.pool(api, "vm=10.9.9.9")
		first := true
		w.fail = func(call string, id lb.PoolID) error {
			if call == "PUT" && id == web && first {
				first = false
				w.pools[web.Key()].Provisioning = lb.Updating
				return fault.Classify(fault.Failure{Status: 412, MayBeApplied: true}, errors.New("412 after 503"))
			}
			return nil
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(2 * time.Second)
		w.change(api, "n1=10.0.0.1")
		w.wait((poolattempt.MaxOwnWriteIntervals + 1) * w.lanes.cfg.Interval)
		if n := len(w.pools[api.Key()].Addresses); n != 2 {
			t.Errorf("the other pool still has %d addresses", n)
		}
	})
}

// A pool of network interfaces, which is always written separately, does not prevent a trial.
func TestAPoolOfInterfacesForbidsNoTrial(t *testing.T) {
	inAutoWorld(t, 4, func(w *whole, _ *shelf, pools []lb.PoolID) {
		w.set(func() { w.pools[pools[3].Key()].NIC = true })
		w.look(pools[3], "n1=10.0.0.1")
		w.wait(time.Minute)
		w.wrote()
		w.all(pools[:3], "n1=10.0.0.1")
		w.expect("calls", w.wrote(), asTrial)
	})
}
