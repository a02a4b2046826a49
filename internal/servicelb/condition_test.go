// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
)

func TestServicesAreCountedByState(t *testing.T) {
	now := time.Now()
	azures := &fault.Fault{Class: fault.Terminal, Code: "SubnetIsFull", Err: errors.New("full")}
	r := New(Config{Settings: Settings{Class: "weir.dev/azure"}})
	level := func(st *State) { st.Level.request = &balancer.Request{} }
	trouble := func(is Condition) func(*State) { return func(st *State) { st.Told.trouble = is } }
	for _, tt := range []struct {
		about string
		state func(*State)
		ours  bool
		want  Condition
	}{
		{"new", func(*State) {}, true, Waits},
		{"served", level, true, Ready},
		{"somebody undoes it", func(st *State) { level(st); st.Level.contests = []contest.Contest{{}} }, true, Contested},
		{"wrong", trouble(Refused), true, Refused},
		{"the plan has no room", trouble(troubleOf(errors.New("no room"))), true, Refused},
		{"Azure has no room", trouble(troubleOf(azures)), true, Failed},
		{"it had one before", func(st *State) { level(st); st.Told.trouble = Failed }, true, Failed},
		{"Azure asked for patience", func(st *State) { st.Told.trouble, st.Waiting.notBefore = Failed, now.Add(time.Second) }, true, Waits},
		{"and it is over", func(st *State) { st.Told.trouble, st.Waiting.notBefore = Failed, now }, true, Failed},
		{"it goes", level, false, Leaving},
		{"it is of another class", trouble(Kept), false, Kept},
		{"it would lose its address", trouble(Held), true, Held},
		{"its namespace has used its share", trouble(Deferred), true, Deferred},
		{"it cannot go", trouble(Failed), false, Failed},
	} {
		before := r.States.Count()
		s := Service{Name: "shop/" + tt.about, UID: tt.about}
		if tt.ours {
			s.Ownership = Ownership{LoadBalancer: true, Class: new("weir.dev/azure")}
		}
		e := r.States.of(s)
		if r.States.Count()[tt.want] != before[tt.want] {
			t.Errorf("%s: counted before it was looked at", tt.about)
		}
		tt.state(&e.State)
		r.States.show(e, tt.ours, now)
		after := r.States.Count()
		if is := e.shown.condition; is != tt.want || after[tt.want] != before[tt.want]+1 {
			t.Errorf("%s: %s, want %s; %v, then %v", tt.about, is, tt.want, before, after)
		}
	}
	if n := len(r.States.Count()); n != 9 {
		t.Errorf("%d states, and a series of each has to be there from the start", n)
	}
}

// A repeated message is logged once, and again after another one.
func TestTheLogDoesNotRepeatItself(t *testing.T) {
	var log bytes.Buffer
	r, told := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}), &Told{}
	for _, text := range []string{"full", "full", "full", "gone", "full (request id r1)", "full (request id r2)"} {
		r.tell.warn(t.Context(), told, "not as it wants it", "shop/web", errors.New(text))
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 3 {
		t.Errorf("%d warnings, want 3:\n%s", n, log.String())
	}
}
