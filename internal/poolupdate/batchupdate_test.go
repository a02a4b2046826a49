// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/wholewrite"
)

// whole is an Azure with load balancer writes. The load balancer's etag is the sum of its pools'
// etags, so that any pool write changes it.
type whole struct {
	*world
	ignores bool                           // pools in a write are ignored
	poison  string                         // Azure rejects writes with this address
	during  func()                         // runs during a write
	refuse  func(call string) *fault.Fault // nil is never
	loses   func() bool                    // loses the response of a landed write; nil is never
}

// ignoring is an Azure that is known to ignore pools in load balancer writes.
var ignoring = behaviour.Behavior{UpdateAddresses: behaviour.Ignored, UpdateAdminStates: behaviour.Ignored}

// inWholeWorld sets up n pools, p1 and so on, with batched updates.
func inWholeWorld(t *testing.T, n int, story func(w *whole, pools []lb.PoolID)) {
	inWholeWorldOf(t, n, func(c *Config) { c.BatchSetting = wholewrite.Always }, story)
}

// inWholeWorldOf is inWholeWorld with a custom configuration.
func inWholeWorldOf(t *testing.T, n int, configure func(*Config), story func(w *whole, pools []lb.PoolID)) {
	var azure whole
	cfg := Config{MaxRetries: 3, AdminState: true, LoadBalancers: &azure, Version: "v1"}
	configure(&cfg)
	inWorldOf(t, cfg, func(w *world) {
		azure.world = w
		var pools []lb.PoolID
		for i := range n {
			pools = append(pools, poolID("kubernetes", fmt.Sprintf("p%d", i+1)))
			w.pool(pools[i], "vm=10.9.9.9")
		}
		story(&azure, pools)
	})
}

func (w *whole) called(call string) error {
	w.calls = append(w.calls, fmt.Sprintf("+%s %s balancer", time.Since(w.start), call))
	if w.refuse != nil {
		if f := w.refuse(call); f != nil {
			return f
		}
	}
	return nil
}

func (w *whole) etag(of ...lb.LoadBalancerID) string {
	sum := 0
	for _, p := range w.pools {
		if len(of) > 0 && p.ID.LoadBalancer.Key() != of[0].Key() {
			continue
		}
		n, _ := strconv.Atoi(p.Etag)
		sum += n
	}
	return strconv.Itoa(sum)
}

func (w *whole) GetLoadBalancer(_ context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	time.Sleep(w.readTime)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.called("GET"); err != nil {
		return lb.LoadBalancer{}, err
	}
	b := lb.LoadBalancer{ID: id, Etag: w.etag(id)}
	for _, p := range w.pools {
		if p.ID.LoadBalancer.Key() == id.Key() {
			b.Pools = append(b.Pools, *p)
		}
	}
	return b, nil
}

func (w *whole) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	w.mu.Lock()
	err := w.called("PUT")
	during := w.during
	w.mu.Unlock()
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	if during != nil {
		during()
	}
	select {
	case <-time.After(w.writeTime):
	case <-ctx.Done():
		return lb.LoadBalancer{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.etag(b.ID) != b.Etag {
		return lb.LoadBalancer{}, fault.Classify(fault.Failure{Status: 412}, errors.New("etag"))
	}
	if w.poison != "" {
		for _, p := range b.Pools {
			if strings.Contains(spell(p.Addresses), w.poison) {
				return lb.LoadBalancer{}, fault.Classify(fault.Failure{Status: 400, Codes: []string{"Poison"}}, errors.New("poison"))
			}
		}
	}
	w.land(b)
	if w.loses != nil && w.loses() {
		return lb.LoadBalancer{}, fault.Classify(fault.Failure{ResultUnknown: true}, errors.New("connection reset"))
	}
	shown := lb.LoadBalancer{ID: b.ID, Etag: w.etag(b.ID)}
	for _, p := range w.pools {
		if p.ID.LoadBalancer.Key() == b.ID.Key() {
			shown.Pools = append(shown.Pools, *p)
		}
	}
	return shown, nil
}

// land applies a write. The caller holds w.mu.
func (w *whole) land(b lb.LoadBalancer) {
	for _, p := range b.Pools {
		held := w.pools[p.ID.Key()]
		if !w.ignores {
			held.Addresses = p.Addresses
		}
		n, _ := strconv.Atoi(held.Etag)
		held.Etag, held.Provisioning = strconv.Itoa(n+1), lb.Succeeded
	}
}

// drainAll sets n1 Down in all pools at once.
func (w *whole) drainAll(pools []lb.PoolID, members string) {
	for _, id := range pools {
		w.set(func() { w.wanted[id.Name] = addresses(members) })
	}
	var ops []poolschedule.Operation
	for _, id := range pools {
		var stake poolschedule.Impact
		w.set(func() { stake = w.stake(id) })
		ops = append(ops, poolschedule.Operation{Ref: poolschedule.Ref{Name: id.Name}, Pool: id, Service: poolschedule.ServiceName{Name: id.Name}, Admin: true, ChangedAt: time.Now(), Impact: stake})
	}
	w.lanes.Add(ops...)
}

// wrote returns the calls without records and times.
func (w *whole) wrote() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, call := range w.calls {
		if fields := strings.Fields(call); fields[1] != "RECORD" {
			all = append(all, fields[1]+" "+fields[2])
		}
	}
	w.calls = nil
	return strings.Join(all, ", ")
}

func (w *whole) outcomes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.reports {
		all = append(all, r.Ref.Name+" "+string(r.Outcome))
	}
	w.reports = nil
	return strings.Join(all, ", ")
}

func (w *whole) expect(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s\ngot  %s\nwant %s", what, got, want)
	}
}

// Changes within the debounce, and admin states, are one write; the first of each kind is read
// back. Two pools suffice once support is known.
func TestThreePoolsAreOneWrite(t *testing.T) {
	inWholeWorld(t, 3, func(w *whole, pools []lb.PoolID) {
		for _, id := range pools {
			w.change(id, "n1=10.0.0.1")
			time.Sleep(50 * time.Millisecond)
		}
		w.wait(10 * time.Second)
		w.expect("membership", w.wrote(), "GET balancer, PUT balancer, GET balancer")
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
		w.drainAll(pools, "n1=10.0.0.1/Down")
		w.wait(10 * time.Second)
		w.expect("admin states", w.wrote(), "GET balancer, PUT balancer, GET balancer")
		w.drainAll(pools, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.drainAll(pools, "n1=10.0.0.1/Down")
		w.wait(30 * time.Second)
		w.expect("and again", w.wrote(), "GET balancer, PUT balancer, GET balancer, PUT balancer")
		for _, id := range pools {
			w.expectPool(id, "vm=10.9.9.9 n1=10.0.0.1/Down")
		}
		w.drainAll(pools[:2], "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expect("two", w.wrote(), "GET balancer, PUT balancer")
		w.drainAll(pools[:1], "n1=10.0.0.1/Down")
		w.wait(10 * time.Second)
		w.expect("one", w.wrote(), "GET p1, PUT p1")
	})
}

// Each pool is settled like an attempt of its own: retries, parking, notifications. A 412 causes a
// second write in the same attempt.
func TestWhatAWholeWriteMeetsIsAnAttemptOfEachPool(t *testing.T) {
	for name, given := range map[string]fault.Failure{
		"409": {Status: 409}, "412": {Status: 412}, "429": {Status: 429}, "a closed gate": {GateClosed: true},
		"overtaken": {OperationFailed: true, Codes: []string{"CanceledAndSupersededDueToAnotherOperation"}},
	} {
		for _, on := range []string{"GET", "PUT"} {
			inWholeWorld(t, 3, func(w *whole, pools []lb.PoolID) {
				left := 4
				if name == "412" && on == "PUT" {
					left = 8
				}
				w.refuse = func(call string) *fault.Fault {
					if call != on || left == 0 {
						return nil
					}
					left--
					return fault.Classify(given, errors.New(name))
				}
				for _, id := range pools {
					w.change(id, "n1=10.0.0.1")
				}
				w.wait(4 * interval)
				if left != 0 {
					t.Errorf("%s %s: %d are left", name, on, left)
				}
				for i, id := range pools {
					var told string
					for _, r := range w.reports {
						if r.Ref.Name == id.Name {
							told += fmt.Sprint(string(r.Outcome), r.RetriesUsed, len(r.Retrying), len(r.Failed), " ")
						}
					}
					w.expect(fmt.Sprint(name, " ", on, " ", i), told, "Retriable1 1 0 Retriable2 1 0 Retriable3 1 0 Retriable3 0 1 ")
				}
			})
		}
	}
}

// A pool that Azure rejects does not fail the others, and is not batched again.
func TestAPoisonedPoolTakesNoNeighbourDown(t *testing.T) {
	inWholeWorld(t, 5, func(w *whole, pools []lb.PoolID) {
		w.poison = "10.0.0.66"
		w.fail = func(call string, id lb.PoolID) error {
			if call == "PUT" && id.Name == "p3" {
				return fault.Classify(fault.Failure{Status: 400, Codes: []string{"Poison"}}, errors.New("poison"))
			}
			return nil
		}
		for _, id := range pools {
			if id.Name == "p3" {
				w.change(id, "n6=10.0.0.66")
			} else {
				w.change(id, "n1=10.0.0.1")
			}
		}
		w.wait(20 * time.Second)
		w.expect("the first time", w.wrote(), "GET balancer, PUT balancer, GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3, GET p4, PUT p4, GET p5, PUT p5")
		w.expect("and", w.outcomes(), "p1 Written, p2 Written, p3 Terminal, p4 Written, p5 Written")
		for _, id := range pools {
			if id.Name != "p3" {
				w.change(id, "n2=10.0.0.2")
			} else {
				w.change(id, "n6=10.0.0.66 n2=10.0.0.2")
			}
		}
		w.wait(20 * time.Second)
		w.expect("the second time", w.wrote(), "GET balancer, PUT balancer, GET balancer, GET p3, PUT p3")
	})
}

// If Azure rejects the batched write itself, there is none for a while.
func TestARefusedWholeWriteIsNotRepeatedAtOnce(t *testing.T) {
	inWholeWorld(t, 3, func(w *whole, pools []lb.PoolID) {
		w.refuse = func(call string) *fault.Fault {
			if call == "PUT" {
				return fault.Classify(fault.Failure{Status: 403}, errors.New("no"))
			}
			return nil
		}
		singles := "GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3"
		for i, want := range []string{"GET balancer, PUT balancer, " + singles, singles, "GET balancer, PUT balancer, " + singles} {
			for _, id := range pools {
				w.change(id, fmt.Sprintf("n%d=10.0.0.%d", i, i+1))
			}
			w.wait(20 * time.Second)
			w.expect(fmt.Sprint("time ", i), w.wrote(), want)
			if strings.Contains(w.outcomes(), "Terminal") {
				t.Error("the refusal is taken for an attempt of a pool")
			}
			if i == 1 {
				w.wait(rejectedPause)
			}
		}
	})
}

// If Azure accepts a load balancer write but ignores its pools, reading back reveals it, and no
// other follows.
func TestIgnoredPoolsAreNoticed(t *testing.T) {
	inWholeWorld(t, 3, func(w *whole, pools []lb.PoolID) {
		w.ignores = true
		for i := range 2 {
			w.drainAll(pools, fmt.Sprintf("n1=10.0.0.%d/Down", i+1))
			w.wait(20 * time.Second)
			want := "GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3"
			if i == 0 {
				want = "GET balancer, PUT balancer, GET balancer, " + want
			}
			w.expect("", w.wrote(), want)
			w.expect("", w.outcomes(), "p1 Written, p2 Written, p3 Written")
		}
		w.expectPool(pools[2], "vm=10.9.9.9 n1=10.0.0.2/Down")
	})
}

// A write with unknown result is an attempt of each pool, and the next write invalidates it.
func TestALostWholeWriteIsFencedOff(t *testing.T) {
	inWholeWorld(t, 3, func(w *whole, pools []lb.PoolID) {
		for _, id := range pools {
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(20 * time.Second)
		w.outcomes()
		late := ""
		w.refuse = func(call string) *fault.Fault {
			if call != "PUT" || late != "" {
				return nil
			}
			late = w.etag()
			for _, id := range pools { // the change is reverted
				w.wanted[id.Name] = addresses("n1=10.0.0.1")
			}
			return fault.Classify(fault.Failure{ResultUnknown: true}, errors.New("connection reset"))
		}
		for _, id := range pools {
			w.change(id, "") // the pools lose n1 if it lands
		}
		w.wait(2 * interval)
		if w.etag() == late {
			t.Error("the lost write still has a valid etag")
		}
		w.expect("", w.outcomes(), "p1 Retriable, p2 Retriable, p3 Retriable, p1 Unchanged, p2 Unchanged, p3 Unchanged")
	})
}

// Conflicting writes between read and write are preserved, as are pools that were not due: parked,
// rejected, or of network interfaces.
func TestOthersSurviveAWholeWrite(t *testing.T) {
	inWholeWorld(t, 6, func(w *whole, pools []lb.PoolID) {
		w.pools[pools[5].Key()].NIC = true
		w.failingPool("PUT", pools[4], 1, func() fault.Failure {
			return fault.Failure{Status: 429, RetryAt: w.start.Add(time.Hour)}
		})
		w.change(pools[4], "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.outcomes()
		once := false
		w.during = func() {
			if !once {
				once = true
				w.set(func() {
					p := w.pools[pools[3].Key()]
					p.Addresses, p.Etag = append(p.Addresses, addresses("vm2=10.9.9.8")...), p.Etag+"1"
				})
			}
		}
		for _, id := range pools {
			w.change(id, "n2=10.0.0.2")
		}
		w.wait(3 * interval)
		w.expectPool(pools[0], "vm=10.9.9.9 n2=10.0.0.2")
		w.expectPool(pools[3], "vm=10.9.9.9 vm2=10.9.9.8 n2=10.0.0.2")
		w.expectPool(pools[4], "vm=10.9.9.9")
		w.expectPool(pools[5], "vm=10.9.9.9")
		w.expect("", w.outcomes(), "p1 Written, p2 Written, p3 Written, p4 Written, p6 Refused")
	})
}

// lapsed is a lease that has ended when a write would start.
type lapsed struct{}

func (lapsed) Enter(context.Context) (func() bool, func(), error) {
	return func() bool { return false }, func() {}, nil
}

func TestNoWholeWriteWithoutTheLease(t *testing.T) {
	var azure whole
	inWorldOf(t, Config{MaxRetries: 3, LoadBalancers: &azure, BatchSetting: wholewrite.Always, Lease: lapsed{}}, func(w *world) {
		azure.world = w
		for i := range 3 {
			id := poolID("kubernetes", fmt.Sprintf("p%d", i+1))
			w.pool(id, "")
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(time.Second)
		azure.expect("calls", azure.wrote(), "GET balancer")
		azure.expect("", azure.outcomes(), "p1 Postponed, p2 Postponed, p3 Postponed")
	})
}

// A missing pool is attempted separately, which diagnoses it; the others are written.
func TestAPoolThatIsGoneHoldsUpNoWholeWrite(t *testing.T) {
	inWholeWorld(t, 4, func(w *whole, pools []lb.PoolID) {
		delete(w.pools, pools[1].Key())
		for _, id := range pools {
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(20 * time.Second)
		w.expect("calls", w.wrote(), "GET balancer, PUT balancer, GET balancer, GET p2")
		w.expect("", w.outcomes(), "p1 Written, p3 Written, p4 Written, p2 Stale")
	})
}

func TestStoppingInTheMiddleOfAWholeWriteReportsNothing(t *testing.T) {
	inWholeWorld(t, 3, func(w *whole, pools []lb.PoolID) {
		w.wait(time.Second) // the first workers run
		stop := w.die()
		for _, id := range pools {
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(time.Second)
		stop()
		w.wait(20 * time.Second)
		w.expect("calls", w.wrote(), "GET balancer, PUT balancer")
		w.expect("", w.outcomes(), "")
	})
}

// Retry-After for a load balancer does not apply to its pools: they are updated separately at once,
// at no cost, until it has passed.
func TestALoadBalancerThatWantsPatienceHoldsUpNoPool(t *testing.T) {
	inWholeWorld(t, 3, func(w *whole, pools []lb.PoolID) {
		until := time.Now().Add(5 * time.Minute)
		w.refuse = func(call string) *fault.Fault {
			if call == "GET" && time.Now().Before(until) {
				return fault.Classify(fault.Failure{RetryAfterPending: true, RetryAt: until}, errors.New("not sent"))
			}
			return nil
		}
		for _, id := range pools {
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(10 * time.Second)
		w.expectReports("p1 Written Updated:p1", "p2 Written Updated:p2", "p3 Written Updated:p3")
		w.wrote()
		w.drainAll(pools, "n1=10.0.0.1/Down")
		w.wait(10 * time.Second)
		w.expect("meanwhile", w.wrote(), "GET p1, PUT p1, GET p2, PUT p2, GET p3, PUT p3")
		time.Sleep(time.Until(until))
		w.drainAll(pools, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expect("when its time has come", w.wrote(), "GET balancer, PUT balancer, GET balancer")
	})
}
