// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// Nothing is changed and everything is reported.
func TestLifeOfADryRun(t *testing.T) {
	set := func(o *Settings) { o.ResyncPeriod = time.Hour }
	lives(t, "dry_run", set, func(l *life) {
		l.s.DryRun = true
		l.BeginChapter("It is new.")
		l.eachFails(func() { l.looks() }, "planned")
		l.looks()
		l.BeginChapter("Something else is wanted, and nothing else follows; an hour later the same.")
		l.s.Object.Labels = map[string]string{"tier": "front"}
		l.s.Object.Annotations[service.Internal] = "true"
		l.looks()
		l.s.Object.Labels = map[string]string{}
		l.s.Object.Annotations = map[string]string{}
		time.Sleep(l.looks())
		l.looks()
		l.declines = errors.New("no room")
		l.s.Object.Annotations[service.Internal] = "true"
		l.looks()
		l.declines = nil
		l.BeginChapter("It has a problem for a moment.")
		l.s.Problems = []service.Problem{{Field: "weir.dev/x", Value: "y", Expected: "z"}}
		l.looks()
		l.s.Problems = nil
		l.looks()
		l.BeginChapter("The dry run is over.")
		l.s.DryRun = false
		l.served()
		l.BeginChapter("It is one again, and goes so.")
		l.s.DryRun = true
		l.looks()
		l.s.Deleting = true
		l.looks()
	})
}

// What a dry run of a whole cluster requests and persists.
func TestLifeOfAClusterDryRun(t *testing.T) {
	lives(t, "rehearsal", nil, func(l *life) {
		asks := func() {
			req, problems, err := l.r.BuildRequest(context.Background(), l, l.s)
			l.AddLine("request of %q on %q, leaves %d, wants %t, problems %q%s", req.Service, req.On.Name, len(req.RemoveFrom), req.Desired != nil, problems, failing(err))
		}
		l.BeginChapter("It is asked for.")
		asks()
		l.s.Problems = []service.Problem{{Field: "weir.dev/x", Value: "y", Expected: "z"}}
		asks()
		l.s.Problems = nil
		l.declines = errOnce
		asks()
		l.declines = nil
		l.s.LoadBalancer = false
		asks()
		l.s.LoadBalancer = true
		l.BeginChapter("It is written down.")
		res := loadbalancer.Result{Request: loadbalancer.Request{Service: "shop/web", On: onLB("kubernetes"), Desired: &service.Spec{}, Groups: []string{"rg-2"}}, DeletedLoadBalancers: []lb.LoadBalancerID{onLB("lb-9")}}
		l.eachFails(func() { l.AddLine("written down%s", failing(l.r.PersistResult(context.Background(), res))) }, "nodes", "record", "make", "drop")
		asks()
		l.BeginChapter("It failed, is gone, or is nothing any more.")
		failed := res
		failed.Err = errOnce
		l.AddLine("written down%s", failing(l.r.PersistResult(context.Background(), failed)))
		leaves := res
		leaves.Desired, leaves.MissingPools = nil, pools("shop-web")
		l.AddLine("written down%s", failing(l.r.PersistResult(context.Background(), leaves)))
		l.gone = true
		l.AddLine("written down%s", failing(l.r.PersistResult(context.Background(), res)))
		l.BeginChapter("Its class is another's.")
		l.s.Class, l.s.Finalizer = new("other"), true
		l.s.Record.Class = new("other")
		l.AddLine("%s", l.r.RetainReason(l.s))
	})
}

func TestLifeOfAServiceOfOtherClasses(t *testing.T) {
	set := func(o *Settings) {
		o.Class = ""
		o.Service.PublicIPs = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}
	}
	lives(t, "service_of_other_classes", set, func(l *life) {
		l.s.Class, l.s.Cleanup = nil, true
		l.s.Object.Annotations[service.PIPResourceGroup] = "rg-2"
		l.BeginChapter("Another service controller has served it.")
		l.eachFails(func() { l.looks() }, "reads")
		time.Sleep(time.Second)
		l.served()
		l.BeginChapter("The class that is served becomes another, and it stays; and leaves.")
		l.s.Cleanup = false
		l.r.cfg.Settings.Class = "weir.dev/azure"
		l.looks()
		l.looks()
		l.s.Deleting = true
		l.looks()
		l.ends()
		l.looks()
		l.BeginChapter("One that another service controller has served goes.")
		l.r.cfg.Settings.Class = ""
		l.s = Service{
			Name: "shop/web", UID: "0004", Ownership: Ownership{LoadBalancer: true, Cleanup: true, Deleting: true},
			Record: Record{LoadBalancers: []string{"kubernetes"}}, Object: l.s.Object,
		}
		l.looks()
		l.ends()
		l.looks()
		l.r.cfg.Settings.Class = "weir.dev/azure"
		l.BeginChapter("One of another's class, that Weir never served.")
		l.s.Deleting, l.s.UID, l.s.Object.UID, l.s.Finalizer = false, "0003", "0003", false
		l.looks()
		uid, ok := l.r.States.KnownUID("shop/web")
		l.AddLine("known %q %t", uid, ok)
	})
}

// Unenforced restrictions, and rules that name nodes.
func TestLifeOfAServiceWithRestrictions(t *testing.T) {
	lives(t, "service_with_restrictions", nil, func(l *life) {
		l.s.Object.Annotations[service.AllowedIPRanges] = "192.0.2.0/24"
		l.BeginChapter("They have no effect.")
		l.served()
		l.BeginChapter("They have to have one.")
		l.r.cfg.Settings.RequireEffectiveRestrictions = true
		l.r.events.settings.RequireEffectiveRestrictions = true
		l.looks()
		l.looks()
		l.BeginChapter("A security group keeps them, and names nodes.")
		l.r.cfg.Settings.HasSecurityGroup, l.r.events.settings.HasSecurityGroup = true, true
		l.s.Object.Annotations[service.DisableFloatingIP] = "true"
		l.served()
		l.nodes = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
		l.served()
		l.looks()
		l.nodes = nil
		l.looks()
		l.BeginChapter("Nodes that are nowhere yet.")
		l.s.RetryToken = "x"
		l.looks()
		l.ends()
		l.fails["make"] = NotPlacedError{Node: "node n1"}
		l.looks()
		l.fails["make"] = NotPlacedError{Node: "node n1", Reason: "it has no label"}
		l.looks()
		l.looks()
		l.fails["make"] = ErrNameTaken
		l.looks()
		l.looks()
		for _, err := range []error{ErrServiceGone, ErrPoolDeleting, errForbidden} {
			l.fails["make"] = err
			l.looks()
		}
	})
}
