// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

func guarded(o *Settings) { o.HasSecurityGroup = true }

const (
	wrongTimeout = service.IdleTimeout + ` is "never": want a whole number of minutes from 4 to 100. Nothing is changed in Azure until that is fixed`
	denied       = ", except that clients that the Service does not admit are denied"
)

// An invalid Service that admits fewer clients is closed to the others, once. When valid again it gets all it
// wants.
func TestAnInvalidServiceIsClosed(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t, guarded)
		w.s.Object.SourceRanges, w.s.Object.Annotations[service.IdleTimeout] = []string{"10.0.0.0/8", "10.1.2.3/8"}, "never"
		w.looks()
		partial := `PartiallyInvalid: spec.loadBalancerSourceRanges is "10.1.2.3/8": want the range as 10.0.0.0/8, or the one address as 10.1.2.3/32. It admits no client. The valid restrictions are in force, and all other clients are denied`
		w.is("asked to admit [10.0.0.0/8] alone")
		w.ends()
		w.looks()
		w.is(partial, "SyncLoadBalancerFailed: Error syncing load balancer: "+wrongTimeout+denied)
		w.looks()
		w.is()
		w.counts(ConditionRejected)
		w.s.Object.SourceRanges = []string{"10.0.0.0/8", "192.0.2.0/24"} // one more client is not admitted now
		w.looks()
		w.is()
		w.s.Object.SourceRanges = []string{"10.1.0.0/16"}
		w.looks()
		w.is("asked to admit [10.1.0.0/16] alone")
		w.ends()
		w.looks()
		delete(w.s.Object.Annotations, service.IdleTimeout)
		w.looks()
		w.is("EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
	})
}

// Whatever blocks the load balancer, the Service is closed first.
func TestAServiceIsClosedWhateverItsLoadBalancerWaitsFor(t *testing.T) {
	rejected := &armerror.Fault{Class: armerror.Terminal, Code: "Rejected", Err: errors.New("rejected")}
	for about, before := range map[string]func(w *world){
		"nothing": func(*world) {},
		"its share of writes": func(w *world) {
			w.defers = func(string, *service.Spec, bool, time.Time) error {
				return armerror.NewDeferred(time.Now().Add(time.Minute), errors.New("no room"))
			}
		},
		"no load balancer can be chosen": func(w *world) { w.declines = errors.New("no load balancer takes it") },
		"what Azure asked for": func(w *world) {
			w.s.Object.Ports[0].Port = 81
			w.looks()
			w.answers = []error{armerror.NewDeferred(time.Now().Add(time.Hour), errors.New("in an hour"))}
			w.ends()
			w.looks()
		},
		"a rejection": func(w *world) {
			w.s.Object.Ports[0].Port = 81
			w.looks()
			w.answers = []error{rejected}
			w.ends()
			w.looks()
		},
	} {
		t.Run(about, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				w := served(t, guarded)
				before(w)
				w.log = nil
				w.s.Object.SourceRanges, w.s.Object.Ports[0].Port = []string{"10.0.0.0/8"}, 82
				w.looks()
				if len(w.log) == 0 || w.log[0] != "asked to admit [10.0.0.0/8] alone" {
					t.Errorf("%v", w.log)
				}
			})
		})
	}
}

// A request running during an edit may have admitted clients: they are removed afterwards, even if it failed.
func TestARequestUnderWayIsClosedAfter(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t, guarded)
		w.s.Object.SourceRanges = []string{"10.0.0.0/8"}
		w.looks()
		w.ends()
		w.looks()
		w.ends()
		w.looks()
		w.s.Object.SourceRanges = nil
		w.looks()
		w.s.Object.SourceRanges = []string{"10.0.0.0/8"}
		w.answers = []error{&armerror.Fault{Class: armerror.Retriable, Err: errors.New("nobody knows")}}
		w.ends()
		w.log = nil
		w.looks()
		w.is("SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: nobody knows", "asked to admit [10.0.0.0/8] alone")
	})
}

// A failed closing is reported once and retried; other requests do not wait for it.
func TestFailedAccessClosing(t *testing.T) {
	inTime(t, func(t *testing.T) {
		w := served(t, guarded)
		w.s.Object.SourceRanges = []string{"10.0.0.0/8"}
		locked := &armerror.Fault{Class: armerror.Terminal, Code: "ScopeLocked", Err: errors.New("locked")}
		w.answers = []error{locked}
		w.looks()
		w.ends()
		w.looks()
		const told = "SyncLoadBalancerFailed: Error syncing load balancer: failed to deny clients that the Service does not admit: locked"
		w.is("asked to admit [10.0.0.0/8] alone", told, "EnsuringLoadBalancer: Ensuring load balancer", "asked all for kubernetes")
		w.answers = []error{locked, locked}
		w.ends()
		if requeueAfter := w.looks(); requeueAfter != time.Second {
			t.Errorf("it comes back after %s", requeueAfter)
		}
		time.Sleep(time.Second)
		w.log = nil
		w.looks()
		w.ends()
		w.looks()
		w.is("asked to admit [10.0.0.0/8] alone", "asked all for kubernetes") // reported already
		w.ends()
		w.looks()
		w.counts(ConditionReady)
		time.Sleep(time.Hour)
		w.log = nil
		w.looks()
		w.is() // in sync, so it is closed
	})
}

// Nothing is closed without a group, for a dry run, or for a Service without parts in Azure or that is or was
// open.
func TestServicesWhoseAccessIsNotClosed(t *testing.T) {
	internal := func(w *world) { w.s.Object.Annotations[service.Internal] = "true" }
	ranges := func(w *world) { w.s.Object.SourceRanges = []string{"10.0.0.0/8"} }
	for _, tt := range []struct {
		about string
		edit  func(w *world)
		want  bool
	}{
		{"fewer clients", ranges, true},
		{"internal", internal, true},
		{"internal or not", func(w *world) { w.s.Object.Annotations[service.Internal] = "perhaps" }, true},
		{"internal before", func(w *world) { internal(w); w.s.Record.LoadBalancers = []string{"kubernetes-internal"} }, false},
		{"internal before, with ranges", func(w *world) { internal(w); ranges(w); w.s.Record.LoadBalancers = []string{"kubernetes-internal"} }, true},
		{"open", func(*world) {}, false},
		{"without rules", func(w *world) { ranges(w); w.s.Object.Annotations[service.DisableSecurityRules] = "true" }, false},
		{"a dry run", func(w *world) { ranges(w); w.s.DryRun = true }, false},
		{"without a group", func(w *world) { ranges(w); w.r.cfg.Settings.HasSecurityGroup = false }, false},
		{"nothing in Azure", func(w *world) { ranges(w); w.s.Record = Record{} }, false},
		{"another class", func(w *world) { ranges(w); w.s.Class = new("another") }, false},
		{"it leaves", func(w *world) { ranges(w); w.s.Deleting = true }, false},
	} {
		t.Run(tt.about, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				w := newWorld(t, guarded) // a new process
				w.s.Finalizer, w.s.StatusAddresses, w.s.Record = true, lost, Record{LoadBalancers: []string{"kubernetes"}, Class: new(class)}
				tt.edit(w)
				w.looks()
				if got := w.asked != nil && w.asked.CloseOnly; got != tt.want {
					t.Errorf("closed %t: %v", got, w.log)
				}
			})
		})
	}
}

// Once the group can be written, no client stays admitted against the spec, even if the load balancer cannot be
// written; closing never admits a client.
func TestLawSourcesThatAreNotAllowedAreClosed(t *testing.T) {
	clients := []netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.2.0.1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("203.0.113.1")}
	admits := func(restriction service.Restriction, client netip.Addr) bool {
		if !restriction.Access.IsLimited() {
			return !restriction.Internal
		}
		return slices.ContainsFunc(restriction.Access.Ranges, func(p netip.Prefix) bool { return p.Contains(client) })
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, guarded)
		in := map[netip.Addr]bool{}
		brings := func(err error, done bool) {
			req := *w.asked
			w.asked = nil
			if err == nil || done {
				for _, client := range clients {
					in[client] = admits(req.Desired.Restriction(), client) && (!req.CloseOnly || in[client])
				}
			}
			res := loadbalancer.Result{Request: req, Err: err, Changed: true}
			if !req.CloseOnly {
				res.Addresses = lost
			}
			w.r.States.AddResult(res)
			w.looks()
		}
		failed := &armerror.Fault{Class: armerror.Retriable, Code: "InternalServerError", Err: errors.New("not now")}
		for range rapid.IntRange(1, 30).Draw(rt, "things that happen") {
			switch rapid.SampledFrom([]string{"ranges", "internal", "valid", "end", "end", "end", "fail", "half", "restart", "time"}).Draw(rt, "what") {
			case "ranges":
				w.s.Object.SourceRanges = rapid.SampledFrom([][]string{nil, {"10.0.0.0/8"}, {"10.1.0.0/16"}, {"10.2.0.0/16", "192.0.2.0/24"}, {"wrong"}, {"10.1.0.0/16", "wrong"}}).Draw(rt, "ranges")
			case "internal":
				w.s.Object.Annotations[service.Internal] = rapid.SampledFrom([]string{"true", "false", "perhaps"}).Draw(rt, "internal")
			case "valid":
				w.s.Object.Annotations[service.IdleTimeout] = rapid.SampledFrom([]string{"4", "never"}).Draw(rt, "idle timeout")
			case "end":
				if w.asked != nil {
					brings(nil, true)
				}
			case "fail":
				if w.asked != nil {
					brings(failed, false)
				}
			case "half":
				if w.asked != nil {
					brings(failed, true)
				}
			case "restart":
				w.asked = nil
				w.r = newReconciler(w, w.r.cfg.Settings)
			case "time":
				w.later += time.Minute
			}
			w.looks()
		}
		for range 20 { // the group can be written, the load balancer cannot
			w.later += 2 * time.Minute
			if w.looks(); w.asked == nil {
				continue
			}
			if w.asked.CloseOnly {
				brings(nil, true)
			} else {
				brings(failed, false)
			}
		}
		restriction := service.RestrictionOf(w.s.Object)
		for _, client := range clients {
			if in[client] && !admits(restriction, client) {
				rt.Fatalf("%s stays in: %v %v\n%v", client, w.s.Object.SourceRanges, w.s.Object.Annotations, w.log)
			}
		}
	})
}
