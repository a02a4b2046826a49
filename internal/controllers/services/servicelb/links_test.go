// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

// newPublished returns a Service with a Private Link Service.
func newPublished(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, func(o *Settings) { o.Service.PrivateLinks = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"} })
	w.s.Object.Annotations[service.PLSCreate] = "true"
	return w
}

// A rejected Private Link Service leaves the address, is reported once and retried; its groups stay recorded
// until its parts are gone.
func TestAPrivateLinkServiceThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPublished(t)
		var logged bytes.Buffer
		w.r.events.log = slog.New(slog.NewTextHandler(&logged, nil))
		w.looks()
		if groups := w.r.States.byName["shop/web"].Placement.LinkGroups; !slices.Equal(groups, []string{"rg"}) {
			t.Errorf("on record before anything is asked: %v", groups)
		}
		w.log = nil
		refused := armerror.Classify(armerror.Failure{Status: 400, Codes: []string{"Refused"}}, errors.New("refused"))
		w.link = privatelink.Result{
			Err: refused, State: &privatelink.State{Reason: privatelink.ReasonFailed, Text: "refused"},
			Events: []privatelink.Event{{Reason: privatelink.ReasonDisconnected, Text: "one"}},
		}
		w.ends()
		w.unwritable = errors.New("no API server")
		w.looks()
		w.is("PrivateEndpointDisconnected: one", "condition Failed: refused", "error: no API server")
		w.unwritable = nil
		requeueAfter := w.looks()
		w.is("condition Failed: refused", "pools made on kubernetes", "published [198.18.0.1]",
			"EnsuredLoadBalancer: Ensured load balancer", "SyncLoadBalancerFailed: Error syncing load balancer: private link service: refused")
		if requeueAfter != time.Second {
			t.Errorf("it is requeued in %v", requeueAfter)
		}
		if want := "nextAttempt=" + humanize.FormatTime(time.Now().Add(time.Second)); strings.Count(logged.String(), "private link service out of sync") != 1 || !strings.Contains(logged.String(), want) {
			t.Errorf("no %s in %s", want, &logged)
		}
		w.counts(ConditionFailed)
		w.link.Events = nil
		w.later = time.Second
		w.looks()
		w.ends()
		if requeueAfter = w.looks(); requeueAfter != 2*time.Second {
			t.Errorf("the second time it is requeued in %v", requeueAfter)
		}
	})
}

// A Private Link Service that cannot be changed stays recorded; otherwise it would not be found again.
func TestRetainedPrivateLinkServiceIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPublished(t)
		recorded := func() []string { return w.r.States.byName["shop/web"].Placement.LinkGroups }
		w.looks()
		w.ends()
		w.looks()
		w.s.Object.Annotations[service.PLSResourceGroup] = "elsewhere"
		w.link = privatelink.Result{IsIncomplete: true, State: &privatelink.State{Reason: privatelink.ReasonRejected, Text: "connected"}}
		w.looks()
		w.ends()
		w.looks()
		if got := recorded(); !slices.Equal(got, []string{"rg", "elsewhere"}) {
			t.Errorf("on record while it stays: %v", got)
		}
		w.link = privatelink.Result{State: &privatelink.State{Reason: privatelink.ReasonPublished, Text: "as alias"}}
		w.later = 5 * time.Minute
		w.looks()
		w.ends()
		w.looks()
		if got := recorded(); !slices.Equal(got, []string{"elsewhere"}) {
			t.Errorf("on record once it is replaced: %v", got)
		}
	})
}

// A Private Link Service of another service controller is searched for when its Service leaves, because it has
// no record.
func TestAnInheritedPrivateLinkServiceIsLookedFor(t *testing.T) {
	w := newWorld(t, func(o *Settings) {
		o.Class = ""
		o.Service.PrivateLinks = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}
	})
	w.s.Ownership = Ownership{LoadBalancer: true, Cleanup: true, Deleting: true}
	w.s.Object.Annotations[service.PLSCreate] = "true"
	w.s.Object.Annotations[service.PLSResourceGroup] = "theirs"
	d, err := w.r.buildDesired(t.Context(), w.s)
	if err != nil || d.Spec != nil || !slices.Equal(d.LinkGroups, []string{"theirs"}) {
		t.Fatalf("it is looked for in %v, %v", d.LinkGroups, err)
	}
	req, _, err := w.r.newRequest(t.Context(), unreadableLinks{w}, w.s, Record{LoadBalancers: []string{"kubernetes"}}, d)
	if err != nil || !slices.Equal(req.LinkGroups, []string{"theirs"}) {
		t.Errorf("asked for are %v, %v", req.LinkGroups, err)
	}
}

// unreadableLinks fails reads of Private Link Services.
type unreadableLinks struct{ *world }

func (unreadableLinks) CheckLinksReadable(context.Context, string) error { return errForbidden }

// Connections are read every five minutes and counted.
func TestConnectionsAreLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPublished(t)
		w.link.State = &privatelink.State{Reason: privatelink.ReasonPublished, Text: "as alias", Connections: desired.Count{Pending: 2, Approved: 1}}
		w.link.Warnings = []privatelink.Event{{Reason: privatelink.ReasonWarning, Text: "floating"}}
		w.looks()
		w.log = nil
		w.ends()
		if requeueAfter := w.looks(); requeueAfter <= 0 || requeueAfter > 5*time.Minute {
			t.Errorf("it is requeued in %v", requeueAfter)
		}
		if !slices.Contains(w.log, "PrivateLinkServiceWarning: floating") {
			t.Errorf("it happened %q", w.log)
		}
		if got := w.r.States.CountConnections(); got != (desired.Count{Pending: 2, Approved: 1}) {
			t.Errorf("counted are %+v", got)
		}
		w.later = 5 * time.Minute
		w.looks()
		w.log = nil
		w.link.State = &privatelink.State{Reason: privatelink.ReasonShared, Text: "as alias", Connections: desired.Count{Pending: 2}}
		w.ends()
		w.looks()
		if slices.Contains(w.log, "PrivateLinkServiceWarning: floating") {
			t.Error("it is warned again")
		}
		if got := w.r.States.CountConnections(); got != (desired.Count{}) {
			t.Errorf("counted for one that shares are %+v", got)
		}
	})
}
