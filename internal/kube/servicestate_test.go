// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
)

func TestServicesAreCountedByState(t *testing.T) {
	now := time.Now()
	azures := &fault.Fault{Class: fault.Terminal, Code: "SubnetIsFull", Err: errors.New("full")}
	c := &Cluster{}
	for i, tt := range []struct {
		about string
		claim func(*claim)
		ours  bool
		want  serviceState
	}{
		{"new", func(*claim) {}, true, stateWaiting},
		{"served", func(cl *claim) { cl.level = &balancer.Request{} }, true, stateReady},
		{"somebody undoes it", func(cl *claim) { cl.level, cl.contests = &balancer.Request{}, []balancer.Contest{{}} }, true, stateFought},
		{"wrong", func(cl *claim) { cl.trouble = stateRefused }, true, stateRefused},
		{"the plan has no room", func(cl *claim) { cl.trouble = troubleOf(errors.New("no room")) }, true, stateRefused},
		{"Azure has no room", func(cl *claim) { cl.trouble = troubleOf(azures) }, true, stateFailed},
		{"it had one before", func(cl *claim) { cl.level, cl.trouble = &balancer.Request{}, stateFailed }, true, stateFailed},
		{"Azure asked for patience", func(cl *claim) { cl.trouble, cl.notBefore = stateFailed, now.Add(time.Second) }, true, stateWaiting},
		{"and it is over", func(cl *claim) { cl.trouble, cl.notBefore = stateFailed, now }, true, stateFailed},
		{"it goes", func(cl *claim) { cl.level = &balancer.Request{} }, false, stateGoing},
		{"it is of another class", func(cl *claim) { cl.trouble = stateKept }, false, stateKept},
		{"it would lose its address", func(cl *claim) { cl.trouble = stateHeld }, true, stateHeld},
		{"it cannot go", func(cl *claim) { cl.trouble = stateFailed }, false, stateFailed},
	} {
		before := c.ServiceStates()
		cl := c.claims.of(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: tt.about, UID: types.UID(rune('a' + i))}})
		if c.ServiceStates()[string(tt.want)] != before[string(tt.want)] {
			t.Errorf("%s: counted before it was looked at", tt.about)
		}
		tt.claim(cl)
		cl.judge(tt.ours, now)
		after := c.ServiceStates()
		if is := *cl.state.Load(); is != tt.want || after[string(tt.want)] != before[string(tt.want)]+1 {
			t.Errorf("%s: %s, want %s; %v, then %v", tt.about, is, tt.want, before, after)
		}
	}
	if n := len(c.ServiceStates()); n != 8 {
		t.Errorf("%d states, and a series of each has to be there from the start", n)
	}
}

// The log says the same of a Service once, and again after something else.
func TestTheLogDoesNotRepeatItself(t *testing.T) {
	var log bytes.Buffer
	c, cl := &Cluster{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}, &claim{}
	for _, text := range []string{"full", "full", "full", "gone", "full"} {
		c.warn(t.Context(), cl, "not as it wants it", "shop/web", errors.New(text))
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 3 {
		t.Errorf("%d warnings, want 3:\n%s", n, log.String())
	}
}
