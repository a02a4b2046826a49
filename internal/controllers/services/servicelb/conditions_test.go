// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
)

// has compares the reasons of both conditions and the number of writes.
func (w *world) has(accepted, programmed string, written int) {
	w.t.Helper()
	a, p := w.verdicts[TypeAccepted], w.verdicts[TypeProgrammed]
	if a.Reason != accepted || p.Reason != programmed || w.concluded != written {
		w.t.Errorf("%+v and %+v, written %d times; want %q and %q, %d times", a, p, w.concluded, accepted, programmed, written)
	}
	w.concluded = 0
}

// Conditions follow a Service from its first request to its end; unchanged ones are not written.
func TestConditionsFollowALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonUpdating, 3) // and that it has no security group
		if text := w.verdicts[TypeProgrammed].Text; !strings.Contains(text, "it needs load balancer kubernetes, public IP kubernetes-") || !strings.Contains(text, ", backend pool kubernetes") {
			t.Errorf("the resources are not named: %s", text)
		}
		w.ends()
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 1)
		for range 3 {
			w.looks()
		}
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 0)

		w.s.Object.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "never"}
		w.looks()
		w.looks()
		w.has(ConditionReasonInvalid, ConditionReasonNotAccepted, 2)
		if text := w.verdicts[TypeAccepted].Text; !strings.Contains(text, "never") {
			t.Errorf("what is wrong is not said: %s", text)
		}

		w.s.Object.Annotations = map[string]string{}
		w.looks()
		w.ends()
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 2)

		w.s.LoadBalancer = false
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonLeaving, 1)
		w.ends()
		w.looks()
		w.has("", "", 3)
	})
}

// The condition of a deleted Service is written only where it has news: an earlier failure ends, the removal fails, or it
// waits for network interfaces.
func TestConditionOfADeletedService(t *testing.T) {
	denied := &armerror.Fault{Class: armerror.Terminal, Code: "AuthorizationFailed", Err: errors.New("403 AuthorizationFailed")}
	for about, tt := range map[string]struct {
		before, after []error
		interfaces    int
		asked, ended  string
		text          string
	}{
		"it is removed at once":       {asked: ConditionReasonProgrammed, ended: ConditionReasonProgrammed},
		"it has failed before":        {before: []error{denied}, asked: ConditionReasonLeaving, ended: ConditionReasonLeaving},
		"the removal fails":           {after: []error{denied}, asked: ConditionReasonProgrammed, ended: ConditionReasonFailed, text: "failed to delete load balancer: 403"},
		"network interfaces are left": {interfaces: 2, asked: ConditionReasonProgrammed, ended: ConditionReasonLeaving, text: "its 2 network interfaces have left backend pool kubernetes"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.looks()
			w.answers = tt.before
			w.ends()
			w.looks()
			time.Sleep(time.Minute)
			w.s.Deleting = true
			w.looks()
			if v := w.verdicts[TypeProgrammed]; v.Reason != tt.asked {
				t.Errorf("%s: requested: %+v", about, v)
			}
			if w.answers = tt.after; tt.interfaces > 0 {
				w.drains = []plan.DrainingPool{{Pool: lb.PoolID{Name: "kubernetes"}, Interfaces: tt.interfaces}}
			}
			w.ends()
			w.looks()
			if v := w.verdicts[TypeProgrammed]; v.Reason != tt.ended || !strings.Contains(v.Text, tt.text) {
				t.Errorf("%s: ended: %+v", about, v)
			}
		})
	}
}

// A public Service shows that Weir opens no security group for it; an internal one, or one with rules by its user,
// does not, nor does any where Weir manages a group.
func TestAServiceWithoutASecurityGroupShowsIt(t *testing.T) {
	const prefix = "service.beta.kubernetes.io/"
	for about, tt := range map[string]struct {
		guarded     bool
		annotations map[string]string
		want        string
	}{
		"public":                {false, nil, ConditionReasonNotManaged},
		"with a group":          {true, nil, ""},
		"internal":              {false, map[string]string{prefix + "azure-load-balancer-internal": "true"}, ""},
		"rules by its user":     {false, map[string]string{prefix + "azure-disable-load-balancer-nsg-rule": "true"}, ""},
		"no port is forwarded":  {false, map[string]string{prefix + "port_80_no_lb_rule": "true"}, ""},
		"not valid, not judged": {false, map[string]string{prefix + "azure-load-balancer-tcp-idle-timeout": "x"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(o *Settings) {
				o.HasSecurityGroup, o.Service.VirtualNetwork, o.Service.Subnet = tt.guarded, "/vnet", "nodes"
			})
			w.s.Object.Annotations = tt.annotations
			w.looks()
			cond := w.verdicts[TypeSecurityGroup]
			if cond.Reason != tt.want || cond.IsTrue() || tt.want != "" && !strings.Contains(cond.Text, "securityGroupName") {
				t.Errorf("%s: %+v", about, cond)
			}
			w.s.Object.Annotations = map[string]string{prefix + "azure-load-balancer-internal": "true"}
			if w.asked != nil {
				w.ends()
			}
			w.looks()
			if cond := w.verdicts[TypeSecurityGroup]; cond.Reason != "" {
				t.Errorf("%s: after it became internal %+v", about, cond)
			}
		})
	}
}

// A restriction without effect is visible, whether it is invalid or the security group does not enforce it.
func TestARestrictionWithoutEffectIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.s.Object.SourceRanges = []string{"192.0.2.0/24"}
		w.looks()
		w.ends()
		w.looks()
		w.looks()
		w.has(ConditionReasonOpen, ConditionReasonProgrammed, 4)
		if v := w.verdicts[TypeAccepted]; !v.IsTrue() || !strings.Contains(v.Text, "securityGroupName") {
			t.Errorf("%+v", v)
		}
		w.s.Object.SourceRanges = nil
		w.note = "security group nsg is on no subnet"
		w.looks()
		w.ends()
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonNotEnforced, 3)
		if v := w.verdicts[TypeProgrammed]; !v.IsTrue() || v.Text != w.note {
			t.Errorf("%+v", v)
		}
		w.empty = true
		w.looks()
		time.Sleep(noEndpointsDelay)
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonNotEnforced, 0) // the worse one
	})
}

// Repeated equal failures write nothing; the recovery does.
func TestTheSameFailureIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		full := func(id string) error {
			return &armerror.Fault{Class: armerror.Terminal, Code: "SubnetIsFull", RequestID: id, Err: errors.New("SubnetIsFull, correlation id " + id)}
		}
		w.answers = []error{full("e4fa9a7e-3d4c-4c0b-9a06-1c7b2f8f1d11"), full("0b7c1a52-77aa-4b3e-8d6e-5a9d0c3e9f22"), full("0b7c1a52-77aa-4b3e-8d6e-5a9d0c3e9f23")}
		w.looks()
		w.concluded = 0
		for range 3 {
			w.ends()
			requeueAfter := w.looks()
			w.later += requeueAfter
			w.looks()
		}
		w.has(ConditionReasonAccepted, ConditionReasonFailed, 1)
		if text := w.verdicts[TypeProgrammed].Text; !strings.Contains(text, "SubnetIsFull") {
			t.Errorf("Azure's code is not said: %s", text)
		}
		w.ends()
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 1)
	})
}

// A condition that returns before the informer cache shows the change is written anyway; an unchanged one is
// written once.
func TestConditionsThatACopyShowsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		w.looks()
		w.copied, w.concluded = maps.Clone(w.verdicts), 0
		w.s.Object.Annotations[service.IdleTimeout] = "7"
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonUpdating, 1)
		w.ends()
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 1)
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 0)
	})
}

// The same for conflict and Private Link conditions.
func TestContestsAndLinksThatACopyShowsLate(t *testing.T) {
	w := newWorld(t)
	e := &entry{State: State{}}
	publish := func(reason string) func() error {
		return func() error {
			return w.r.reportLink(t.Context(), w.s, e, loadbalancer.Result{Link: privatelink.Result{State: &privatelink.State{Reason: reason, Text: "so"}}})
		}
	}
	contested := func(contests ...conflict.Conflict) func() error {
		return func() error { return w.r.reportConflicts(t.Context(), w.s, &e.State, contests) }
	}
	fight := conflict.Conflict{Resource: "lb", Until: time.Unix(1, 0)}
	for i, step := range []struct {
		tell       func() error
		anew       bool
		unwritable error
	}{
		{contested(), false, nil}, {contested(fight), true, nil}, {contested(fight), false, nil}, {contested(), true, errForbidden},
		{contested(), true, nil}, {contested(), false, nil},
		{publish("Published"), false, nil}, {publish("Published"), false, nil}, {publish("Pending"), true, errForbidden},
		{publish("Published"), true, nil}, {publish("Published"), false, nil},
	} {
		w.anew, w.unwritable = nil, step.unwritable
		if err := step.tell(); !errors.Is(err, step.unwritable) || !slices.Equal(w.anew, []bool{step.anew}) {
			t.Errorf("step %d: %v, written anew: %v, want %v", i, err, w.anew, step.anew)
		}
	}
}

// A rejected port is named in the status until fixed; a fault of the whole Service is not a port's.
func TestPortsThatAreRefusedAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := served(t)
		for _, tt := range []struct {
			protocol, annotation string
			want                 map[service.PortRef]string
		}{
			{"SCTP", "", map[service.PortRef]string{{Port: 443, Protocol: "SCTP"}: "UnsupportedProtocol"}},
			{"TCP", "port_443_health-probe_protocol", map[service.PortRef]string{{Port: 443}: "InvalidAnnotation"}},
			{"TCP", "azure-load-balancer-tcp-idle-timeout", map[service.PortRef]string{}},
			{"TCP", "", nil},
		} {
			w.s.Object.Ports = []service.Port{{Port: 80, NodePort: 30080, Protocol: "TCP"}, {Port: 443, NodePort: 30443, Protocol: tt.protocol}}
			w.s.Object.Annotations = map[string]string{}
			if tt.annotation != "" {
				w.s.Object.Annotations["service.beta.kubernetes.io/"+tt.annotation] = "never"
			}
			if w.looks(); w.asked != nil {
				w.ends()
				w.looks()
			}
			if !maps.Equal(w.refused, tt.want) {
				t.Errorf("%s %s: %v, want %v", tt.protocol, tt.annotation, w.refused, tt.want)
			}
		}
	})
}

// An SCTP port is rejected and the others are served while other Services share the address.
func TestAPortOfSCTPAtASharedAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.s.Object.Annotations = map[string]string{service.Internal: "true", service.IPv4: "10.0.0.50"}
		w.s.Object.Ports = []service.Port{{Port: 80, NodePort: 30080, Protocol: "TCP"}, {Port: 3868, Protocol: "SCTP"}}
		refused := map[service.PortRef]string{{Port: 3868, Protocol: "SCTP"}: "UnsupportedProtocol"}
		for _, shares := range []bool{true, false, true} {
			w.shares = shares
			w.looks()
			if w.asked == nil || len(w.asked.Desired.Rules) != 1 || (w.asked.Desired.Rules[0].Transport == lb.All) == shares {
				t.Fatalf("shared %t: asked %+v", shares, w.asked)
			}
			w.ends()
			w.looks()
			if maps.Equal(w.refused, refused) != shares || (w.verdicts[TypeAccepted].Reason == ConditionReasonPartial) != shares {
				t.Errorf("shared %t: refused %v, %+v", shares, w.refused, w.verdicts[TypeAccepted])
			}
		}
	})
}

// An invalid part is reported once and visible while it lasts; the rest is served.
func TestAPartThatIsWrongIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.r.cfg.Settings.HasSecurityGroup = true
		w.s.Object.Annotations = map[string]string{service.AllowedIPRanges: "192.0.2.0/24,198.51.100.7/24"}
		w.looks()
		if w.asked == nil || len(w.asked.Desired.Access.Ranges) != 1 || !w.asked.Desired.Access.IsLimited() {
			t.Fatalf("asked: %+v", w.asked)
		}
		w.ends()
		w.looks()
		w.looks()
		w.has(ConditionReasonPartial, ConditionReasonProgrammed, 3)
		if v := w.verdicts[TypeAccepted]; !v.IsTrue() || !strings.Contains(v.Text, "198.51.100.7/24") {
			t.Errorf("%+v", v)
		}
		w.s.Object.Annotations = nil
		w.looks()
		w.ends()
		w.looks()
		w.has(ConditionReasonAccepted, ConditionReasonProgrammed, 3)
	})
}

// A Service whose HTTP probes fail because of a Private Link Service with PROXY protocol gets one warning; TCP
// probes are not affected.
func TestHTTPProbesWithProxyProtocolAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, tt := range []struct {
			beside   string
			local    bool
			reported int
		}{{"shop/link", false, 0}, {"shop/link", true, 1}, {"shop/link", true, 1}, {"", true, 1}, {"shop/other", true, 2}} {
			w.proxied, w.s.Object.Local, w.s.Object.HealthCheckNodePort = tt.beside, tt.local, 32000
			if w.looks(); w.asked != nil {
				w.ends()
				w.looks()
			}
			if w.warned != tt.reported {
				t.Errorf("%+v: told %d times", tt, w.warned)
			}
		}
	})
}

// A new process writes nothing until it knows the state.
func TestAProcessThatBeginsWritesNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.looks()
		w.ends()
		w.looks()
		next := newWorld(t)
		next.s, next.verdicts = w.s, w.verdicts
		next.looks()
		next.has(ConditionReasonAccepted, ConditionReasonProgrammed, 0)
		next.ends()
		next.looks()
		next.has(ConditionReasonAccepted, ConditionReasonProgrammed, 0)
	})
}

func TestNotProgrammedReasons(t *testing.T) {
	now := time.Now()
	inSync := func(st *State) { st.Sync.request = &loadbalancer.Request{} }
	for _, tt := range []struct {
		about  string
		state  func(*State)
		dryRun bool
		want   string
	}{
		{"nothing is known", func(*State) {}, false, ""},
		{"a further try runs", func(st *State) { st.Events.failure, st.Pending.Running = ConditionFailed, true }, false, ""},
		{"the plan has no room", func(st *State) { st.Events.failure, st.Events.lastWarning = ConditionRejected, "no room" }, false, ConditionReasonRejected},
		{"Azure asked for patience", func(st *State) {
			st.Events.failure, st.Events.lastWarning, st.Waiting.notBefore = ConditionFailed, "TooManyRequests", now.Add(time.Second)
		}, false, ConditionReasonRetryAfter},
		{"pools have to be filled", func(st *State) { st.PoolWait.startWait(waitFill, loadbalancer.Result{}, now) }, false, ConditionReasonPoolFilling},
		{"it would lose its address", func(st *State) { st.Events.failure, st.Events.lastWarning = ConditionBlocked, "198.18.0.1" }, false, ConditionReasonRemovalBlocked},
		{"it is only planned", inSync, true, ConditionReasonDryRun},
		{"a rehearsal fails", func(st *State) { st.Events.failure, st.Events.lastWarning = ConditionFailed, "throttled" }, true, ConditionReasonFailed},
		{"another client reverts it", func(st *State) {
			st.Sync.request, st.Sync.conflicts = &loadbalancer.Request{}, []conflict.Conflict{{}}
		}, false, ConditionReasonConflict},
	} {
		s := Service{Ownership: Ownership{LoadBalancer: true, Class: new(class)}, DryRun: tt.dryRun}
		st := &State{}
		tt.state(st)
		if reason, text := st.programmedReason(s, class, now); reason != tt.want || (text == "") != (reason == "") {
			t.Errorf("%s: %q, %q; want %q", tt.about, reason, text, tt.want)
		}
	}
}

// Every reason is documented.
func TestReasonsOfConditionsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/reference/service-conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{
		ConditionReasonAccepted, ConditionReasonInvalid, ConditionReasonProgrammed, ConditionReasonNoEndpoints, ConditionReasonNotAccepted, ConditionReasonUpdating, ConditionReasonRetryAfter, ConditionReasonRejected, ConditionReasonFailed,
		ConditionReasonConflict, ConditionReasonPoolFilling, ConditionReasonRemovalBlocked, ConditionReasonRetained, ConditionReasonLeaving, ConditionReasonDryRun, ConditionReasonMigrating,
	} {
		if !strings.Contains(string(doc), "| `"+reason+"` |") {
			t.Errorf("%s is not in the table", reason)
		}
	}
}

// A wait for Azure's Retry-After has its end in the condition.
func TestAWaitForRetryAfterHasItsEnd(t *testing.T) {
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	st := &State{}
	st.Events.lastWarning, st.Waiting.notBefore = "429 TooManyRequests", now.Add(time.Hour)
	if reason, text := st.waitReason(); reason != ConditionReasonRetryAfter || text != "Weir waits for Azure until 2026-11-29T11:00:00Z: 429 TooManyRequests" {
		t.Errorf("%s: %s", reason, text)
	}
}
