// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// Steps of a Service without a running request.
func TestNext(t *testing.T) {
	now := time.Unix(1000, 0)
	wants := func(edits ...func(*Desired)) Desired {
		d := Desired{Spec: &service.Spec{Owner: "a1"}, SelectorResult: "y"}
		for _, edit := range edits {
			edit(&d)
		}
		return d
	}
	nothing := func(d *Desired) { d.Spec = nil }
	wrong := func(d *Desired) { d.Problems = []service.Problem{{Field: "f"}} }
	inSync := func(st *State) {
		st.Placement.bound = true
		st.Sync.recordInSync(loadbalancer.Result{Request: loadbalancer.Request{Desired: wants().Spec, On: lb.LoadBalancerID{Name: "kubernetes"}}}, Pending{selectorResult: "y"}, now, 0)
	}
	lookAt := func(at time.Time) func(*State) { return func(st *State) { inSync(st); st.Sync.resyncAt = at } }
	filling := func(st *State) {
		st.PoolWait.startWait(waitFill, loadbalancer.Result{Request: loadbalancer.Request{Desired: wants().Spec}, FillingPools: []lb.PoolID{{Name: "p"}}}, now)
	}
	filled := func(st *State) { filling(st); st.PoolWait.recordChange(true) }
	emptying := func(st *State, w *service.Spec) {
		st.PoolWait.startWait(waitDrain, loadbalancer.Result{Request: loadbalancer.Request{Desired: w}, DrainingPools: []plan.DrainingPool{{Interfaces: 3}}}, now)
	}
	bound := Service{Ownership: Ownership{Finalizer: true}}
	unused := func(st *State) { inSync(st); st.Sync.unused = true }
	allows := Service{Ownership: Ownership{Finalizer: true}, AllowRemoval: true}
	dry := Service{Ownership: Ownership{Finalizer: true}, DryRun: true}
	for _, tt := range []struct {
		about string
		state func(*State)
		s     Service
		d     Desired
		want  Step
	}{
		{"it is new", nil, Service{}, wants(), StepRequest},
		{"something is wrong with it", nil, Service{}, wants(wrong), StepReject},
		{"something is wrong with one that is in sync", inSync, bound, wants(wrong), StepReject},
		{"it has what it wants", inSync, bound, wants(), StepPublish},
		{"it wants something else", inSync, bound, wants(func(d *Desired) { d.Spec = &service.Spec{Owner: "a1", Internal: true} }), StepRequest},
		{"its labels move it", inSync, bound, wants(func(d *Desired) { d.SelectorResult = "n" }), StepRequest},
		{"its security rules name other nodes", inSync, bound, wants(func(d *Desired) { d.NodesChanged = true }), StepRequest},
		{"a person wants it written again", inSync, Service{Ownership: Ownership{Finalizer: true}, RetryToken: "please"}, wants(), StepRequest},
		{"it has a public IP that it does not use", unused, bound, wants(), StepPublish},
		{"a person has that deleted", unused, allows, wants(), StepRequest},
		{"there is none", inSync, allows, wants(), StepPublish},
		{"another client removed the finalizer", inSync, Service{}, wants(), StepRequest},
		{"the informer has not shown the finalizer yet", func(st *State) { inSync(st); st.Placement.bound = false }, Service{}, wants(), StepPublish},
		{"it is not time to look again", lookAt(now.Add(time.Second)), bound, wants(), StepPublish},
		{"it is time to look again", lookAt(now), bound, wants(), StepRequest},
		{"it leaves", inSync, bound, wants(nothing), StepRequest},
		{"it has left", func(st *State) { st.Placement.free = true }, bound, wants(nothing), StepNone},
		{"it has left, and comes back", func(st *State) { st.Placement.free = true }, bound, wants(), StepRequest},
		{"a pool has to be filled first", filling, bound, wants(), StepNone},
		{"a pool is filled", filled, bound, wants(), StepRequest},
		{"it leaves while a pool is filled", filling, bound, wants(nothing), StepRequest},
		{"interfaces have to leave first", func(st *State) { emptying(st, nil) }, bound, wants(nothing), StepNone},
		{"they have left", func(st *State) { emptying(st, nil); st.PoolWait.recordChange(true) }, bound, wants(nothing), StepRequest},
		{"nobody says that they have", func(st *State) { emptying(st, nil); st.PoolWait.until = now }, bound, wants(nothing), StepRequest},
		{"it comes back while they leave", func(st *State) { emptying(st, nil) }, bound, wants(), StepRequest},
		{"they leave what it has left", func(st *State) { inSync(st); emptying(st, wants().Spec) }, bound, wants(), StepPublish},
		{"they have left what it has left", func(st *State) { inSync(st); emptying(st, wants().Spec); st.PoolWait.recordChange(true) }, bound, wants(), StepRequest},
		{"a dry run while they leave", func(st *State) { emptying(st, wants().Spec) }, dry, wants(), StepDryRun},
		{"a dry run", nil, dry, wants(), StepDryRun},
		{"a dry run of one that is in sync", inSync, dry, wants(), StepDryRun},
		{"a dry run while a pool is filled", filling, dry, wants(), StepDryRun},
		{"a dry run with something wrong", inSync, dry, wants(wrong), StepReject},
	} {
		var st State
		if tt.state != nil {
			tt.state(&st)
		}
		if got := NextStep(st, tt.s, tt.d, now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}

// Steps after a result.
func TestSettle(t *testing.T) {
	wants := loadbalancer.Request{Desired: &service.Spec{}}
	failed := func(err error) loadbalancer.Result { return loadbalancer.Result{Request: wants, Err: err} }
	pools := []lb.PoolID{{Name: "p"}}
	closed := &armerror.Fault{Class: armerror.Retriable, Code: armerror.CodeGateClosed, Reason: "gate_closed", Err: errors.New("not sent")}
	for _, tt := range []struct {
		about string
		r     loadbalancer.Result
		own   bool
		want  Step
	}{
		{"nothing may be sent", failed(closed), true, StepFail},
		{"it has what it wants", loadbalancer.Result{Request: wants}, true, StepFinish},
		{"it leaves meanwhile", loadbalancer.Result{Request: wants}, false, StepDrop},
		{"pools have to be filled", loadbalancer.Result{Request: wants, FillingPools: pools}, true, StepFill},
		{"pools have to be filled, and it leaves", loadbalancer.Result{Request: wants, FillingPools: pools}, false, StepDrop},
		{"it serves at the former load balancer, too", loadbalancer.Result{Request: loadbalancer.Request{Desired: wants.Desired, KeepFormer: true}}, true, StepMove},
		{"the pools of the new one have to be filled", loadbalancer.Result{Request: loadbalancer.Request{Desired: wants.Desired, KeepFormer: true}, FillingPools: pools}, true, StepFill},
		{"it serves at both, and leaves", loadbalancer.Result{Request: loadbalancer.Request{Desired: wants.Desired, KeepFormer: true}}, false, StepDrop},
		{"nothing is left of it", loadbalancer.Result{}, false, StepRelease},
		{"interfaces have to leave", loadbalancer.Result{DrainingPools: []plan.DrainingPool{{Interfaces: 3}}}, false, StepDrain},
		{"interfaces have to leave what it has left", loadbalancer.Result{Request: wants, DrainingPools: []plan.DrainingPool{{Interfaces: 3}}}, true, StepFinish},
		{"nothing is left of it, and it comes back", loadbalancer.Result{}, true, StepRelease},
		{"it would lose addresses", failed(&loadbalancer.AddressLossError{}), true, StepBlock},
		{"Azure refuses it", failed(&armerror.Fault{Class: armerror.Terminal, Code: "SubnetIsFull", Err: errors.New("full")}), true, StepFail},
		{"the plan refuses it", failed(errors.New("no room")), true, StepFail},
		{"somebody is just writing there", failed(fmt.Errorf("pool: %w", &armerror.Fault{Code: conflict.CodeUpdating, Err: errors.New("busy")})), true, StepRetry},
		{"an error goes before what has to be filled", loadbalancer.Result{Request: wants, FillingPools: pools, Err: errors.New("no")}, true, StepFail},
	} {
		if got := ResolveStep(tt.r, tt.own, false); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
	for want, r := range map[Step]loadbalancer.Result{
		StepSkip:   failed(closed),
		StepFail:   {Request: wants, Changed: true, Err: closed}, // half of it is done
		StepRetry:  failed(&armerror.Fault{Code: conflict.CodeUpdating, Err: errors.New("busy")}),
		StepFinish: {Request: wants},
	} {
		if got := ResolveStep(r, true, true); got != want {
			t.Errorf("compared: %s, want %s", got, want)
		}
	}
}

// The relevant wait among several; a running request needs none, because its result triggers a reconcile.
func TestRetryTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	in := func(s time.Duration) time.Time { return now.Add(s * time.Second) }
	inSync := SyncState{request: &loadbalancer.Request{}, resyncAt: in(600)}
	for _, tt := range []struct {
		about string
		st    State
		want  time.Duration
	}{
		{"nothing is known", State{}, 0},
		{"a look", State{Sync: inSync}, 600 * time.Second},
		{"never", State{Sync: SyncState{request: &loadbalancer.Request{}}}, 0},
		{"a look that is due, and nothing followed", State{Sync: SyncState{request: &loadbalancer.Request{}, resyncAt: now}}, 0},
		{"it is under way", State{Sync: inSync, Pending: Pending{Running: true}}, 0},
		{"pools are filled", State{Sync: inSync, PoolWait: PoolWait{reason: waitFill, request: &loadbalancer.Request{}, until: in(30)}}, 30 * time.Second},
		{"interfaces leave", State{Sync: inSync, PoolWait: PoolWait{reason: waitDrain, request: &loadbalancer.Request{}, until: in(30)}}, 30 * time.Second},
		{"a person is waited for", State{Sync: inSync, Removal: Removal{addresses: lost, retryAt: in(60)}}, 60 * time.Second},
		{"a dry run", State{Sync: inSync, DryRun: DryRunState{reported: true, until: in(5)}}, 5 * time.Second},
	} {
		if got := tt.st.nextDelay(now); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}

// A blocked pool conversion is checked periodically: there is no event when the foreign members leave.
func TestAPoolThatIsKeptIsLookedAtAgain(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		about  string
		kept   []plan.RetainedPart
		period time.Duration
		most   time.Duration // 0: never
	}{
		{"nothing is kept", nil, 0, 0},
		{"another pool is kept", []plan.RetainedPart{{Owner: "a1"}}, 0, 0},
		{"it is kept", []plan.RetainedPart{{Owner: "a1"}, {IsConversion: true}}, 0, 5 * time.Minute},
		{"looks are rare", []plan.RetainedPart{{IsConversion: true}}, time.Hour, 5 * time.Minute},
		{"looks are frequent", []plan.RetainedPart{{IsConversion: true}}, time.Minute, time.Minute},
	} {
		var st State
		st.Sync.recordInSync(loadbalancer.Result{Request: loadbalancer.Request{Desired: &service.Spec{}, On: lb.LoadBalancerID{Name: "kubernetes"}}, Retained: tt.kept}, Pending{}, now, tt.period)
		if wait := st.nextDelay(now); wait > tt.most || (wait > 0) != (tt.most > 0) {
			t.Errorf("%s: it is requeued in %v, want at most %v", tt.about, wait, tt.most)
		}
	}
}
