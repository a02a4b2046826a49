// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
)

func TestServicesAreCountedByState(t *testing.T) {
	now := time.Now()
	azures := &armerror.Fault{Class: armerror.Terminal, Code: "SubnetIsFull", Err: errors.New("full")}
	r := New(Config{Settings: Settings{Class: "weir.dev/azure"}})
	inSync := func(st *State) { st.Sync.request = &loadbalancer.Request{} }
	trouble := func(cond Condition) func(*State) { return func(st *State) { st.Events.failure = cond } }
	for _, tt := range []struct {
		about string
		state func(*State)
		own   bool
		want  Condition
	}{
		{"new", func(*State) {}, true, ConditionWaiting},
		{"served", inSync, true, ConditionReady},
		{"another client reverts it", func(st *State) { inSync(st); st.Sync.conflicts = []conflict.Conflict{{}} }, true, ConditionConflict},
		{"wrong", trouble(ConditionRejected), true, ConditionRejected},
		{"the plan has no room", trouble(conditionOf(errors.New("no room"))), true, ConditionRejected},
		{"Azure has no room", trouble(conditionOf(azures)), true, ConditionFailed},
		{"it had one before", func(st *State) { inSync(st); st.Events.failure = ConditionFailed }, true, ConditionFailed},
		{"Azure asked for patience", func(st *State) { st.Events.failure, st.Waiting.notBefore = ConditionFailed, now.Add(time.Second) }, true, ConditionWaiting},
		{"and it is over", func(st *State) { st.Events.failure, st.Waiting.notBefore = ConditionFailed, now }, true, ConditionFailed},
		{"it goes", inSync, false, ConditionLeaving},
		{"it is of another class", trouble(ConditionRetained), false, ConditionRetained},
		{"it would lose its address", trouble(ConditionBlocked), true, ConditionBlocked},
		{"its namespace has used its share", trouble(ConditionDeferred), true, ConditionDeferred},
		{"it cannot go", trouble(ConditionFailed), false, ConditionFailed},
	} {
		before := r.States.CountConditions()
		s := Service{Name: "shop/" + tt.about, UID: tt.about}
		if tt.own {
			s.Ownership = Ownership{LoadBalancer: true, Class: new("weir.dev/azure")}
		}
		e := r.States.entryOf(s)
		if r.States.CountConditions()[tt.want] != before[tt.want] {
			t.Errorf("%s: counted before it was looked at", tt.about)
		}
		tt.state(&e.State)
		r.States.updateView(e, tt.own, now)
		after := r.States.CountConditions()
		if cond := e.view.condition; cond != tt.want || after[tt.want] != before[tt.want]+1 {
			t.Errorf("%s: %s, want %s; %v, then %v", tt.about, cond, tt.want, before, after)
		}
	}
	if n := len(r.States.CountConditions()); n != 9 {
		t.Errorf("%d states, and a series of each has to be there from the start", n)
	}
}

// A repeated message is logged once, and again after another one.
func TestTheLogDoesNotRepeatItself(t *testing.T) {
	var log bytes.Buffer
	r, reported := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}), &EventState{}
	for _, text := range []string{"full", "full", "full", "gone", "full (request id r1)", "full (request id r2)"} {
		r.events.logWarning(t.Context(), reported, "not as it wants it", "shop/web", errors.New(text), time.Time{})
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 3 {
		t.Errorf("%d warnings, want 3:\n%s", n, log.String())
	}
}
