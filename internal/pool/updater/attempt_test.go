// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// outside is one pool with its load balancer and desired state. Calls in fails fail once with the
// given response.
type outside struct {
	Azure
	Cluster
	pool  lb.Pool
	state lb.Provisioning // of the load balancer
	wants []lb.Address
	fails map[string]armerror.Failure
	// thenFails are the calls that fail once after the first failure.
	thenFails map[string]armerror.Failure
	unsure    bool // the desired state is unknown
	calls     []string
	// updating is when another client's write completes.
	updating time.Time
}

func (o *outside) call(name string) error {
	o.calls = append(o.calls, name)
	answer, fails := o.fails[name]
	if !fails {
		return nil
	}
	delete(o.fails, name)
	maps.Copy(o.fails, o.thenFails)
	return armerror.Classify(answer, errors.New("Azure refuses"))
}

func (o *outside) GetPool(context.Context, lb.PoolID) (lb.Pool, error) {
	p := o.pool
	if time.Now().Before(o.updating) {
		p.Provisioning = lb.Updating
	}
	return p, o.call("GET")
}

func (o *outside) PutPool(_ context.Context, p lb.Pool) (lb.Pool, error) {
	if err := o.call("PUT"); err != nil {
		return lb.Pool{}, err
	}
	p.Etag += "+"
	o.pool = p
	return p, nil
}

func (o *outside) ResolveMachines(_ context.Context, p lb.Pool) (lb.Pool, error) {
	return p, o.call("MACHINES")
}

func (o *outside) GetLoadBalancer(context.Context, lb.LoadBalancerID) (lb.LoadBalancer, error) {
	return lb.LoadBalancer{Provisioning: o.state}, o.call("GET ALL")
}

func (o *outside) PutLoadBalancer(_ context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	return b, o.call("PUT ALL")
}

func (o *outside) DesiredPool(schedule.Ref) (diff.Desired, error) {
	if o.unsure {
		return diff.Desired{}, errors.New("the API server does not answer")
	}
	return diff.Desired{Addresses: o.wants, IsOwnAddress: func(netip.Addr) bool { return true }}, nil
}

func (o *outside) Record(context.Context, schedule.Ref, diff.Intent) error {
	return o.call("RECORD")
}

// The calls of an attempt, in order, and its result.
func TestRequestsOfAttempt(t *testing.T) {
	node := []lb.Address{{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}}
	overtaken := armerror.Failure{Status: 412}
	ofInterface := armerror.Failure{Status: 400, Codes: []string{codeInterfaceMember}}
	failed := armerror.Failure{Status: 400, Codes: []string{armerror.CodeParentFailed}}
	wait := armerror.Failure{Status: 412, RetryAt: time.Now().Add(time.Hour)}
	for name, tt := range map[string]struct {
		set                func(o *outside)
		leaseEnds, none    bool
		asks               string
		outcome            diff.Outcome
		overtaken, nowhole bool
	}{
		"a pool that is not in sync":       {asks: "GET RECORD PUT", outcome: diff.Written},
		"a pool that is":                   {set: func(o *outside) { o.wants = nil }, asks: "GET", outcome: diff.Unchanged},
		"it cannot be read":                {set: fails("GET", armerror.Failure{Status: 409}), asks: "GET", outcome: diff.Retriable},
		"nobody knows what it has to hold": {set: func(o *outside) { o.unsure = true }, asks: "GET", outcome: diff.Postponed},
		"the ledger does not answer":       {set: fails("RECORD", armerror.Failure{Status: 409}), asks: "GET RECORD", outcome: diff.Postponed},
		"the lease ends":                   {leaseEnds: true, asks: "GET RECORD", outcome: diff.Postponed},
		"nobody is left to write it for":   {none: true, asks: "GET RECORD", outcome: diff.Postponed},
		"another client wrote":             {set: fails("PUT", overtaken), asks: "GET RECORD PUT GET RECORD PUT", outcome: diff.Written, overtaken: true},
		"Azure names a time":               {set: fails("PUT", wait), asks: "GET RECORD PUT", outcome: diff.Retriable},
		"an interface joins":               {set: fails("PUT", ofInterface), asks: "GET RECORD PUT GET", outcome: diff.Retriable},
		"the load balancer is Failed": {set: func(o *outside) { o.state = lb.Failed; fails("PUT", failed)(o) },
			asks: "GET RECORD PUT GET ALL PUT ALL GET RECORD PUT", outcome: diff.Written},
		"it is not any more": {set: fails("PUT", failed), asks: "GET RECORD PUT GET ALL GET RECORD PUT", outcome: diff.Written},
		"nobody may write it": {set: func(o *outside) { o.state = lb.Failed; fails("PUT", failed)(o) }, nowhole: true,
			asks: "GET RECORD PUT", outcome: diff.Retriable},
	} {
		t.Run(name, func(t *testing.T) {
			o := &outside{pool: lb.Pool{Etag: "1"}, wants: node, fails: map[string]armerror.Failure{}}
			if tt.set != nil {
				tt.set(o)
			}
			c := Config{Interval: time.Minute, Azure: o, LoadBalancers: o, Cluster: o, StatusStore: o, Log: slog.New(slog.DiscardHandler)}
			if tt.nowhole {
				c.LoadBalancers = nil
			}
			r := c.updatePool(t.Context(), o.try(!tt.leaseEnds, !tt.none), schedule.History{})
			if got := strings.Join(o.calls, " "); got != tt.asks || r.Outcome != tt.outcome || r.HadConflict != tt.overtaken {
				t.Errorf("%s: %s, overtaken %t: %v", got, r.Outcome, r.HadConflict, r.Fault)
			}
		})
	}
}

// A second read waits for the conflicting write to complete, up to an interval.
func TestTheSecondReadWaitsForTheOthersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		o := &outside{updating: start.Add(5 * time.Second)}
		c := Config{Interval: 30 * time.Second, Azure: o}
		p, err := c.readIdle(t.Context(), lb.PoolID{}, c.Interval)
		if elapsed := time.Since(start); err != nil || p.Provisioning == lb.Updating || elapsed > 10*time.Second {
			t.Errorf("%v after %s: %v", p.Provisioning, elapsed, err)
		}
		start = time.Now()
		o.updating = start.Add(time.Hour)
		p, err = c.readIdle(t.Context(), lb.PoolID{}, c.Interval)
		if elapsed := time.Since(start); err != nil || p.Provisioning != lb.Updating || elapsed < 10*time.Second || elapsed > c.Interval {
			t.Errorf("%v after %s: %v", p.Provisioning, elapsed, err)
		}
	})
}

// The reasons for not writing consume no retry.
func TestBlockedWrites(t *testing.T) {
	for _, err := range []error{errLeaseLost, errNotNeeded, errMachineMembers} {
		if !errors.Is(err, diff.ErrNotReady) {
			t.Errorf("%v costs a retry", err)
		}
	}
}

func (o *outside) try(valid, needed bool) target {
	return target{isValid: func() bool { return valid }, isNeeded: func() bool { return needed }}
}

func fails(call string, with armerror.Failure) func(o *outside) {
	return func(o *outside) { o.fails[call] = with }
}
