// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// Steps of a Service without a running request.
func TestNext(t *testing.T) {
	now := time.Unix(1000, 0)
	wants := func(edits ...func(*Desired)) Desired {
		d := Desired{Spec: &service.Spec{Owner: "a1"}, Selection: "y"}
		for _, edit := range edits {
			edit(&d)
		}
		return d
	}
	nothing := func(d *Desired) { d.Spec = nil }
	wrong := func(d *Desired) { d.Problems = []service.Problem{{Field: "f"}} }
	level := func(st *State) {
		st.Placement.bound = true
		st.Level.reached(balancer.Result{Request: balancer.Request{Desired: wants().Spec, On: lb.LoadBalancerID{Name: "kubernetes"}}}, Pending{selection: "y"}, now, 0)
	}
	lookAt := func(at time.Time) func(*State) { return func(st *State) { level(st); st.Level.lookAt = at } }
	filling := func(st *State) {
		st.Filling.begins(balancer.Result{Request: balancer.Request{Desired: wants().Spec}, Filling: []lb.PoolID{{Name: "p"}}}, now)
	}
	filled := func(st *State) { filling(st); st.Filling.filled(true) }
	emptying := func(st *State, w *service.Spec) {
		st.Emptying.begins(balancer.Result{Request: balancer.Request{Desired: w}, Emptying: []plan.Emptying{{Interfaces: 3}}}, now)
	}
	bound := Service{Ownership: Ownership{Finalizer: true}}
	unused := func(st *State) { level(st); st.Level.unused = true }
	allows := Service{Ownership: Ownership{Finalizer: true}, AllowRemoval: true}
	dry := Service{Ownership: Ownership{Finalizer: true}, DryRun: true}
	for _, tt := range []struct {
		about string
		state func(*State)
		s     Service
		d     Desired
		want  Step
	}{
		{"it is new", nil, Service{}, wants(), Ask},
		{"something is wrong with it", nil, Service{}, wants(wrong), Refuse},
		{"something is wrong with one that is level", level, bound, wants(wrong), Refuse},
		{"it has what it wants", level, bound, wants(), Publish},
		{"it wants something else", level, bound, wants(func(d *Desired) { d.Spec = &service.Spec{Owner: "a1", Internal: true} }), Ask},
		{"its labels move it", level, bound, wants(func(d *Desired) { d.Selection = "n" }), Ask},
		{"its security rules name other nodes", level, bound, wants(func(d *Desired) { d.NodesChanged = true }), Ask},
		{"a person wants it written again", level, Service{Ownership: Ownership{Finalizer: true}, WriteAgain: "please"}, wants(), Ask},
		{"it has a public IP that it does not use", unused, bound, wants(), Publish},
		{"a person has that deleted", unused, allows, wants(), Ask},
		{"there is none", level, allows, wants(), Publish},
		{"somebody took the finalizer away", level, Service{}, wants(), Ask},
		{"the informer has not shown the finalizer yet", func(st *State) { level(st); st.Placement.bound = false }, Service{}, wants(), Publish},
		{"it is not time to look again", lookAt(now.Add(time.Second)), bound, wants(), Publish},
		{"it is time to look again", lookAt(now), bound, wants(), Ask},
		{"it leaves", level, bound, wants(nothing), Ask},
		{"it has left", func(st *State) { st.Placement.free = true }, bound, wants(nothing), Rest},
		{"it has left, and comes back", func(st *State) { st.Placement.free = true }, bound, wants(), Ask},
		{"a pool has to be filled first", filling, bound, wants(), Rest},
		{"a pool is filled", filled, bound, wants(), Ask},
		{"it leaves while a pool is filled", filling, bound, wants(nothing), Ask},
		{"interfaces have to leave first", func(st *State) { emptying(st, nil) }, bound, wants(nothing), Rest},
		{"they have left", func(st *State) { emptying(st, nil); st.Emptying.emptied(true) }, bound, wants(nothing), Ask},
		{"nobody says that they have", func(st *State) { emptying(st, nil); st.Emptying.until = now }, bound, wants(nothing), Ask},
		{"it comes back while they leave", func(st *State) { emptying(st, nil) }, bound, wants(), Ask},
		{"they leave what it has left", func(st *State) { level(st); emptying(st, wants().Spec) }, bound, wants(), Publish},
		{"they have left what it has left", func(st *State) { level(st); emptying(st, wants().Spec); st.Emptying.emptied(true) }, bound, wants(), Ask},
		{"a dry run while they leave", func(st *State) { emptying(st, wants().Spec) }, dry, wants(), Rehearse},
		{"a dry run", nil, dry, wants(), Rehearse},
		{"a dry run of one that is level", level, dry, wants(), Rehearse},
		{"a dry run while a pool is filled", filling, dry, wants(), Rehearse},
		{"a dry run with something wrong", level, dry, wants(wrong), Refuse},
	} {
		var st State
		if tt.state != nil {
			tt.state(&st)
		}
		if got := Next(st, tt.s, tt.d, now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}

// Steps after a result.
func TestSettle(t *testing.T) {
	wants := balancer.Request{Desired: &service.Spec{}}
	failed := func(err error) balancer.Result { return balancer.Result{Request: wants, Err: err} }
	pools := []lb.PoolID{{Name: "p"}}
	closed := &fault.Fault{Class: fault.Retriable, Code: fault.CodeGateClosed, Reason: "gate_closed", Err: errors.New("not sent")}
	for _, tt := range []struct {
		about string
		r     balancer.Result
		ours  bool
		want  Step
	}{
		{"nothing may be sent", failed(closed), true, Complain},
		{"it has what it wants", balancer.Result{Request: wants}, true, Finish},
		{"it leaves meanwhile", balancer.Result{Request: wants}, false, Drop},
		{"pools have to be filled", balancer.Result{Request: wants, Filling: pools}, true, Fill},
		{"pools have to be filled, and it leaves", balancer.Result{Request: wants, Filling: pools}, false, Drop},
		{"nothing is left of it", balancer.Result{}, false, Release},
		{"interfaces have to leave", balancer.Result{Emptying: []plan.Emptying{{Interfaces: 3}}}, false, Empty},
		{"interfaces have to leave what it has left", balancer.Result{Request: wants, Emptying: []plan.Emptying{{Interfaces: 3}}}, true, Finish},
		{"nothing is left of it, and it comes back", balancer.Result{}, true, Release},
		{"it would lose addresses", failed(&balancer.RemovalError{}), true, Hold},
		{"Azure refuses it", failed(&fault.Fault{Class: fault.Terminal, Code: "SubnetIsFull", Err: errors.New("full")}), true, Complain},
		{"the plan refuses it", failed(errors.New("no room")), true, Complain},
		{"somebody is just writing there", failed(fmt.Errorf("pool: %w", &fault.Fault{Code: contest.CodeUpdating, Err: errors.New("busy")})), true, TryAgain},
		{"an error goes before what has to be filled", balancer.Result{Request: wants, Filling: pools, Err: errors.New("no")}, true, Complain},
	} {
		if got := Settle(tt.r, tt.ours, false); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
	for want, r := range map[Step]balancer.Result{
		PutOff:   failed(closed),
		Complain: {Request: wants, Changed: true, Err: closed}, // half of it is done
		TryAgain: failed(&fault.Fault{Code: contest.CodeUpdating, Err: errors.New("busy")}),
		Finish:   {Request: wants},
	} {
		if got := Settle(r, true, true); got != want {
			t.Errorf("compared: %s, want %s", got, want)
		}
	}
}

// The relevant wait among several; a running request needs none, because its result triggers a reconcile.
func TestUntilWhenAServiceWaits(t *testing.T) {
	now := time.Unix(1000, 0)
	in := func(s time.Duration) time.Time { return now.Add(s * time.Second) }
	level := Level{request: &balancer.Request{}, lookAt: in(600)}
	for _, tt := range []struct {
		about string
		st    State
		want  time.Duration
	}{
		{"nothing is known", State{}, 0},
		{"a look", State{Level: level}, 600 * time.Second},
		{"never", State{Level: Level{request: &balancer.Request{}}}, 0},
		{"a look that is due, and nothing followed", State{Level: Level{request: &balancer.Request{}, lookAt: now}}, 0},
		{"it is under way", State{Level: level, Pending: Pending{Running: true}}, 0},
		{"pools are filled", State{Level: level, Filling: Filling{asked: &balancer.Request{}, until: in(30)}}, 30 * time.Second},
		{"interfaces leave", State{Level: level, Emptying: Emptying{asked: &balancer.Request{}, until: in(30)}}, 30 * time.Second},
		{"a person is waited for", State{Level: level, Removal: Removal{losing: lost, again: in(60)}}, 60 * time.Second},
		{"a dry run", State{Level: level, Plan: Planned{said: true, until: in(5)}}, 5 * time.Second},
	} {
		if got := tt.st.wait(now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}

// A blocked pool conversion is checked periodically: there is no event when the foreign members leave.
func TestAPoolThatIsKeptIsLookedAtAgain(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		about  string
		kept   []plan.Kept
		period time.Duration
		most   time.Duration // 0: never
	}{
		{"nothing is kept", nil, 0, 0},
		{"another pool is kept", []plan.Kept{{Owner: "a1"}}, 0, 0},
		{"it is kept", []plan.Kept{{Owner: "a1"}, {Converting: true}}, 0, 5 * time.Minute},
		{"looks are rare", []plan.Kept{{Converting: true}}, time.Hour, 5 * time.Minute},
		{"looks are frequent", []plan.Kept{{Converting: true}}, time.Minute, time.Minute},
	} {
		var st State
		st.Level.reached(balancer.Result{Request: balancer.Request{Desired: &service.Spec{}, On: lb.LoadBalancerID{Name: "kubernetes"}}, Kept: tt.kept}, Pending{}, now, tt.period)
		if wait := st.wait(now); wait > tt.most || (wait > 0) != (tt.most > 0) {
			t.Errorf("%s: it is looked at again in %v, want at most %v", tt.about, wait, tt.most)
		}
	}
}
