// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
)

// newLoadBalancerIDs returns many load balancers with waiting workers.
func newLoadBalancerIDs(n int) []lb.LoadBalancerID {
	ids := make([]lb.LoadBalancerID, n)
	for i := range ids {
		ids[i] = poolID("s1", fmt.Sprintf("lb%03d", i), "p").LoadBalancer
	}
	return ids
}

// runWorkers runs all workers of a herd and returns the delay of each.
func runWorkers(g *gates, ids []lb.LoadBalancerID) []time.Duration {
	start, remaining := make(chan time.Duration, len(ids)), time.Now()
	for _, id := range ids {
		go func() {
			for {
				until, _ := g.admitLoadBalancer(id, time.Now())
				if until.IsZero() {
					start <- time.Since(remaining)
					return
				}
				time.Sleep(time.Until(until))
			}
		}()
	}
	var durations []time.Duration
	for range ids {
		durations = append(durations, <-start)
	}
	return durations
}

func TestWritesAreSerialAfterAQuota(t *testing.T) {
	for _, tt := range []struct {
		about     string
		perSecond float64
	}{{"reads", 5}, {"writes", 1000.0 / 300}} {
		t.Run(tt.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, ids := newGates(), newLoadBalancerIDs(100)
				until := time.Now().Add(time.Minute)
				g.closeGate(gateKey{tt.about, "s1"}, closedGate{until, "SubscriptionRequestsThrottled"})
				for i, at := range runWorkers(g, ids) {
					want := time.Minute + time.Duration(float64(i)/tt.perSecond*float64(time.Second))
					if diff := (at - want).Abs(); diff > 10*time.Millisecond {
						t.Fatalf("number %d went after %s, want %s", i, at, want)
					}
				}
			})
		})
	}
}

func TestLockedResourceDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ids := newGates(), newLoadBalancerIDs(20)
		for _, id := range ids {
			g.closeGate(lockGate(id), closedGate{time.Now().Add(11 * time.Second), lockCode})
		}
		for i, at := range runWorkers(g, ids) {
			if at != 11*time.Second {
				t.Errorf("number %d went after %s", i, at)
			}
		}
		if n := len(g.limiters); n != 0 {
			t.Errorf("%d quotas are counted, though none was used up", n)
		}
	})
}

// A waiting load balancer keeps its turn and takes only that one.
func TestATurnIsKeptUntilItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ids := newGates(), newLoadBalancerIDs(3)
		until := time.Now().Add(time.Second)
		g.closeGate(gateKey{"writes", "s1"}, closedGate{until, "SubscriptionRequestsThrottled"})
		time.Sleep(time.Second)
		if at, _ := g.admitLoadBalancer(ids[0], time.Now()); !at.IsZero() {
			t.Fatalf("the first has to wait until %s", at)
		}
		second, reason := g.admitLoadBalancer(ids[1], time.Now())
		if second.IsZero() || reason != "" {
			t.Fatalf("the second goes at %s, %q: its turn has not come, and nothing is closed", second, reason)
		}
		for range 10 {
			if recheckAt, _ := g.admitLoadBalancer(ids[1], time.Now()); !recheckAt.Equal(second) {
				t.Fatalf("asking again moved the turn to %s", recheckAt)
			}
		}
		third, _ := g.admitLoadBalancer(ids[2], time.Now())
		if got := third.Sub(second).Round(time.Millisecond); got != 300*time.Millisecond {
			t.Errorf("the third goes %s after the second", got)
		}
		// A gate that closes again cancels all turns.
		g.closeGate(gateKey{"writes", "s1"}, closedGate{third.Add(time.Minute), "SubscriptionRequestsThrottled"})
		if recheckAt, message := g.admitLoadBalancer(ids[1], second); !recheckAt.Equal(third.Add(time.Minute)) || message == "" {
			t.Errorf("goes at %s, %q", recheckAt, message)
		}
		// Once the quota has refilled, nothing is limited.
		time.Sleep(time.Hour)
		for i, at := range runWorkers(g, newLoadBalancerIDs(300)) {
			if at != 0 {
				t.Fatalf("number %d of 300 waits %s an hour later", i, at)
			}
		}
		if len(g.limiters) != 0 {
			t.Error("turns are kept for ever")
		}
	})
}

// Unused turns expire and do not cause a burst.
func TestUnusedTurnExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ids := newGates(), newLoadBalancerIDs(150)
		g.closeGate(gateKey{"writes", "s1"}, closedGate{time.Now().Add(time.Second), "SubscriptionRequestsThrottled"})
		time.Sleep(time.Second)
		for _, id := range ids {
			g.admitLoadBalancer(id, time.Now())
		}
		time.Sleep(46 * time.Second) // each turn has come and was not used
		n := 0
		for _, id := range ids {
			if until, _ := g.admitLoadBalancer(id, time.Now()); until.IsZero() {
				n++
			}
		}
		if n > 25 { // 5 s of reserved turns, and the saved quota
			t.Errorf("%d of 150 went in one instant", n)
		}
	})
}

// countReady returns how many load balancers may start now.
func countReady(g *gates, ids []lb.LoadBalancerID) (n int) {
	for _, id := range ids {
		if until, _ := g.admitLoadBalancer(id, time.Now()); until.IsZero() {
			n++
		}
	}
	return n
}

// An unused quota accumulates until it has refilled.
func TestAQuotaIsSavedUpAndThenWhole(t *testing.T) {
	for _, tt := range []struct {
		about      string
		at         time.Duration // after the gate has opened
		some, many int           // callers, and those that may start
	}{
		{"writes", 0, 500, 1}, {"writes", 30 * time.Second, 500, 101}, {"writes", 59 * time.Second, 500, 197},
		{"writes", 61 * time.Second, 500, 500},
		{"reads", 0, 500, 1}, {"reads", 4 * time.Second, 500, 21}, {"reads", 9 * time.Second, 500, 46}, {"reads", 11 * time.Second, 500, 500},
	} {
		t.Run(fmt.Sprintf("%s after %s", tt.about, tt.at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates()
				g.closeGate(gateKey{tt.about, "s1"}, closedGate{time.Now().Add(time.Second), "SubscriptionRequestsThrottled"})
				time.Sleep(time.Second + tt.at)
				if n := countReady(g, newLoadBalancerIDs(tt.some)); n != tt.many {
					t.Errorf("%d of %d went at once, want %d", n, tt.some, tt.many)
				}
			})
		})
	}
}

// With turns of both quotas, the later one applies.
func TestTheLaterOfTwoTurnsCounts(t *testing.T) {
	for _, used := range []string{"reads", "writes"} {
		t.Run(used, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGates()
				for _, name := range []string{"reads", "writes"} {
					until := time.Now().Add(time.Second) // some quota is saved by then
					if name == used {
						until = until.Add(5 * time.Second)
					}
					g.closeGate(gateKey{name, "s1"}, closedGate{until, "SubscriptionRequestsThrottled"})
				}
				time.Sleep(6 * time.Second)
				if n := countReady(g, newLoadBalancerIDs(10)); n != 1 {
					t.Errorf("%d went at once after the %s were used up, want one", n, used)
				}
			})
		})
	}
}

// Each attempt takes a turn of both quotas.
func TestEachAttemptTakesATurnOfBothQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, id := newGates(), webPool.LoadBalancer
		start := time.Now()
		g.closeGate(quotaGate(id.SubscriptionID, false), closedGate{start.Add(time.Second), "SubscriptionRequestsThrottled"})
		g.closeGate(quotaGate(id.SubscriptionID, true), closedGate{start.Add(time.Second), "SubscriptionRequestsThrottled"})
		for range 31 { // in a row, like one worker with many pools
			for {
				until, _ := g.admitLoadBalancer(id, time.Now())
				if until.IsZero() {
					break
				}
				time.Sleep(time.Until(until))
			}
		}
		if elapsed := time.Since(start).Round(time.Millisecond); elapsed != 10*time.Second {
			t.Errorf("31 attempts started within %s, want a second and 30 writes at 10 in 3 s", elapsed)
		}
	})
}

// Enter limits only the start of attempts.
func TestEnterReportsClosedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := ""
		client := newClient(t, &fakeARM{answer: func(int, *http.Request) reply { return slower(reply{status: 429, body: subBody}, "60") }}, func(o *Options) {
			o.OnGateClosed = func(reason string, until time.Time) { reported += reason + ", " + time.Until(until).String() + "; " }
		})
		if until, reason := client.Enter(webPool.LoadBalancer); !until.IsZero() || reason != "" {
			t.Fatalf("closed until %s, %q before anything happened", until, reason)
		}
		_, _ = client.GetPool(t.Context(), webPool)
		until, message := client.Enter(webPool.LoadBalancer)
		want := "the subscription's reads are closed until 2000-01-01T00:01:00Z after 429 SubscriptionRequestsThrottled"
		if !until.Equal(time.Now().Add(time.Minute)) || message != want {
			t.Errorf("until %s, %q", until, message)
		}
		if reported != want+", 1m0s; " {
			t.Errorf("told %q", reported)
		}
	})
}
