// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
)

var errOnce = errors.New("500 once")

func onLB(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: name}
}

func pools(names ...string) (ids []lb.PoolID) {
	for _, name := range names {
		ids = append(ids, lb.PoolID{LoadBalancer: onLB("kubernetes"), Name: name})
	}
	return ids
}

// eachFails plays a part of a life once for each method of the ledger that fails, and then whole.
func (l *life) eachFails(part func(), methods ...string) {
	for _, m := range methods {
		l.fails[m] = errOnce
		part()
		delete(l.fails, m)
	}
	part()
}

// From the day on which somebody wants a load balancer to the day on which it is gone.
func TestLifeOfAService(t *testing.T) {
	set := func(o *Settings) {
		o.LookAgainAfter = time.Hour
		o.Service.PublicIPs = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}
	}
	lives(t, "service", set, func(l *life) {
		l.held = pools("shop-web")
		l.When("It is new, and cannot be written down at first.")
		l.eachFails(func() { l.looks() }, "record")
		l.When("Azure refuses, twice; what is forbidden is told of once.")
		l.ends(err("no"))
		time.Sleep(l.looks())
		l.looks()
		l.ends(func(r *balancer.Result) {
			r.Err = &fault.Fault{Class: fault.Retriable, Code: contest.CodeUpdating, Err: errors.New("somebody is writing")}
		})
		time.Sleep(l.looks())
		l.looks()
		l.When("It is there, and can be written down at last.")
		l.ends(func(r *balancer.Result) {
			r.Note, r.Without, r.Gone = "the rules have no effect", pools("old"), []lb.LoadBalancerID{onLB("lb-9")}
			r.Kept = []plan.Kept{{Pool: pools("other")[0], Addresses: lost}}
		})
		l.eachFails(func() { l.looks() }, "nodes", "make", "drop", "publish", "contested")
		l.When("It is looked at again in time, with the same note and other addresses.")
		l.looks()
		time.Sleep(l.looks())
		l.looks()
		l.ends(func(r *balancer.Result) {
			r.Note, r.Changed = "the rules have no effect", false
			r.Addresses = append([]netip.Addr{{}}, netip.MustParseAddr("198.18.0.2"))
			r.Kept = []plan.Kept{{Pool: pools("other")[0], Addresses: lost}}
		})
		l.looks()
		l.When("Somebody writes another status.")
		l.s.Shown = lost
		l.looks()
		l.When("Another annotation: twice misspelt, and then right.")
		l.s.Object.Annotations = map[string]string{"service.beta.kubernetes.io/azure-nonsense": "true"}
		l.looks()
		l.looks()
		l.s.Object.Annotations = map[string]string{service.PIPResourceGroup: "RG-2", service.AllowedIPRanges: "192.0.2.0/24"}
		l.eachFails(func() { time.Sleep(l.looks() % time.Minute) }, "reads")
		l.ends()
		l.looks()
		l.When("Somebody undoes it.")
		l.r.States.PoolLost("shop/web", LostPool{"KUBERNETES", "shop-web"})
		l.looks()
		l.r.States.PoolLost("shop/web", LostPool{"KUBERNETES", "kubernetes"})
		l.looks()
		fights := []contest.Contest{{In: "rule a", Until: time.Now().Add(time.Minute)}, {In: "rule b"}}
		l.ends(func(r *balancer.Result) { r.Contests = fights })
		l.looks()
		l.s.WriteAgain = "now"
		l.looks()
		l.ends(func(r *balancer.Result) { r.Contests = fights })
		l.looks()
		fights = []contest.Contest{{In: "rule a", Until: time.Now().Add(time.Hour)}, {In: "rule b", Until: time.Now().Add(time.Minute)}}
		l.s.WriteAgain = "and again"
		l.looks()
		l.ends(func(r *balancer.Result) { r.Contests = fights })
		l.looks()
		l.When("A problem of its own, which cannot be mended but by people.")
		l.s.Problems = []service.Problem{{Field: "weir.dev/x", Value: "y", Want: "z"}, {Field: "weir.dev/w", Value: "v", Want: "u"}}
		l.looks()
		l.looks()
		l.s.Problems = nil
		l.s.Object.Annotations[service.IdleTimeout] = "never"
		l.looks()
		delete(l.s.Object.Annotations, service.IdleTimeout)
		l.looks()
		l.ends()
		l.looks()
		l.When("It becomes one of another type, is taken back, and goes.")
		l.s.LoadBalancer = false
		l.looks()
		l.s.LoadBalancer = true
		l.ends()
		l.looks()
		l.looks()
		l.ends()
		l.looks()
		l.s.LoadBalancer = false
		l.looks()
		l.ends(func(r *balancer.Result) { r.Without = pools("shop-web") })
		l.eachFails(func() { l.looks() }, "drop", "publish", "contested", "record")
		l.looks()
		l.When("Somebody takes its finalizer off; what is known of it does not count then.")
		l.s.LoadBalancer = true
		l.served()
		l.looks()
		l.s.Finalizer = false
		l.looks()
		l.ends()
		l.looks()
		l.When("It is not there for a moment, and then it is.")
		l.gone = true
		l.looks()
		l.gone = false
		l.ends(err("not now"))
		l.looks()
		l.s.LoadBalancer = false
		time.Sleep(time.Second)
		l.looks()
		l.ends()
		l.looks()
		l.When("It is not there for a moment, which costs it what it has; and it gets that again, which nothing takes away.")
		l.s.LoadBalancer = true
		l.served()
		l.gone = true
		l.looks()
		l.gone = false
		l.ends()
		l.looks()
		l.ends()
		l.looks()
		l.When("Another process starts, and finds no room at first.")
		l.starts()
		l.declines = errors.New("no room")
		l.looks()
		l.declines = nil
		time.Sleep(time.Second)
		l.served()
		l.When("It is back, and is deleted before anything was asked.")
		l.s.UID, l.s.Object.UID, l.s.Record, l.s.Finalizer, l.s.Shown = "0005", "0005", Record{}, false, nil
		l.fails["record"] = errOnce
		l.looks()
		delete(l.fails, "record")
		l.s.Deleting = true
		l.looks()
		l.gone = true
		l.looks()
		uid, is := l.r.States.Known("shop/web")
		l.Says("known %q %t", uid, is)
	})
}

// Labels move it; pools have to be filled first.
func TestLifeOfAServiceThatMoves(t *testing.T) {
	byTier := func(on map[string]string) bool { return on["tier"] == "front" }
	set := func(o *Settings) {
		o.Several = []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2", Services: byTier, Namespaces: byTier}}
	}
	lives(t, "service_that_moves", set, func(l *life) {
		l.When("The labels of its namespace are not known yet.")
		l.eachFails(func() { l.looks() }, "labels")
		l.ends()
		l.looks()
		l.When("Its namespace moves, and pools there have to be filled first.")
		l.labels = map[string]string{"tier": "front"}
		l.looks()
		fills := []lb.PoolID{{LoadBalancer: onLB("lb-2"), Name: "shop-web"}}
		filling := func(r *balancer.Result) { r.Filling, r.Addresses = fills, nil }
		l.ends(filling)
		l.eachFails(func() { l.looks() }, "make")
		l.Says("filled: %t; another pool: %t; another Service: %t", l.r.States.PoolFilled("shop/web", fills[0]),
			l.r.States.PoolFilled("shop/web", pools("shop-web")[0]), l.r.States.PoolFilled("shop/api", fills[0]))
		l.looks()
		l.ends()
		l.looks()
		l.When("There is no room for a change; rehearsals would have to wait, and it is taken back.")
		l.labels = map[string]string{}
		l.declines = errors.New("no room")
		l.looks()
		l.looks()
		l.declines = &fault.Fault{Class: fault.Retriable, Code: rehearse.CodeRehearsed, RetryAt: time.Now().Add(time.Minute), Err: errors.New("no share")}
		l.looks()
		l.declines = nil
		time.Sleep(l.looks())
		l.looks()
		l.When("Azure is asked once more, and asks to wait; it is deleted meanwhile, which ends nothing.")
		l.ends(func(r *balancer.Result) {
			r.Err = &fault.Fault{Class: fault.Retriable, Code: "TooManyRequests", RetryAt: time.Now().Add(time.Minute), Err: errors.New("slowly")}
		})
		l.looks()
		l.s.Deleting = true
		time.Sleep(l.looks())
		l.looks()
		l.ends(err("still in use"))
		time.Sleep(l.looks())
		l.looks()
		l.ends()
		l.looks()
		l.When("A new one of its name is filled first, where it does not move, and is done after a while.")
		l.s.Deleting, l.s.UID, l.s.Object.UID = false, "0002", "0002"
		l.looks()
		l.ends(func(r *balancer.Result) { r.Filling = pools("shop-web") })
		l.eachFails(func() { l.looks() }, "publish")
		time.Sleep(l.looks())
		l.looks()
		l.ends(func(r *balancer.Result) { r.Filling = pools("shop-web") })
		l.looks()
		l.Says("another BackendPool went: %t %t", l.r.States.PoolLost("shop/web", LostPool{"kubernetes", "web"}), l.r.States.PoolLost("shop/x", LostPool{}))
		l.looks()
		l.r.States.PoolLost("shop/web", LostPool{"Kubernetes", "Shop-Web"})
		l.looks()
		l.When("It becomes one of another type while a change is under way.")
		l.s.LoadBalancer = false
		l.ends()
		l.looks()
	})
}

// It would lose its address, with five of six.
func TestLifeOfAServiceThatWouldLoseItsAddress(t *testing.T) {
	lives(t, "service_that_would_lose", nil, func(l *life) {
		l.When("It is served, as others are.")
		l.served()
		l.others = []string{"a/1", "a/2", "a/3", "a/4", "a/5", "shop/web"}
		for _, n := range l.others[:5] {
			l.r.States.byName[n] = newEntry(n, State{})
			l.r.States.byName[n].shown = shown{addressed: true, looked: true}
		}
		loses := func(r *balancer.Result) { r.Err = &balancer.RemovalError{Addresses: lost} }
		l.When("All would lose theirs.")
		for _, n := range l.others[:5] {
			l.r.removals.Loses(n, time.Now())
		}
		l.s.WriteAgain = "x"
		l.looks()
		l.ends(loses)
		for range 4 {
			time.Sleep(l.looks() % time.Hour)
		}
		l.When("It is asked again: it would still lose it; and then it would not.")
		l.ends(loses)
		time.Sleep(l.looks())
		l.looks()
		l.ends(func(r *balancer.Result) { r.Changed = false })
		l.looks()
		l.When("Once more, and a person allows it.")
		l.s.WriteAgain = "y"
		l.looks()
		l.ends(loses)
		for range 3 {
			time.Sleep(l.looks() % time.Hour)
		}
		l.s.AllowRemoval = true
		l.looks()
		l.ends()
		l.looks()
		l.s.AllowRemoval = false
		l.When("It is gone without a word.")
		l.gone = true
		for range 4 {
			time.Sleep(l.looks())
		}
		l.When("It is back for a moment, and gone.")
		l.gone = false
		l.looks()
		l.ends()
		l.looks()
		l.gone = true
		for range 2 {
			time.Sleep(l.looks())
		}
		l.When("The others are mended, and it goes.")
		for _, n := range l.others[:5] {
			l.r.removals.Stays(n)
		}
		l.r.removals.Stays("shop/web")
		l.looks()
		l.ends()
		l.looks()
		l.When("One that went while nobody watched, and one that is known.")
		l.Says("%t %t", l.r.States.Absent("shop/web", "0001-0000", "lb-7"), l.r.States.Absent("shop/web", "0001-0000", "lb-8"))
		for range 3 {
			time.Sleep(l.looks())
		}
		l.ends()
		l.looks()
	})
}

// Nothing is changed, and all is said.
func TestLifeOfADryRun(t *testing.T) {
	set := func(o *Settings) { o.LookAgainAfter = time.Hour }
	lives(t, "dry_run", set, func(l *life) {
		l.s.DryRun = true
		l.When("It is new.")
		l.eachFails(func() { l.looks() }, "planned")
		l.looks()
		l.When("Something else is wanted, and nothing else follows; an hour later the same.")
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
		l.When("It has a problem for a moment.")
		l.s.Problems = []service.Problem{{Field: "weir.dev/x", Value: "y", Want: "z"}}
		l.looks()
		l.s.Problems = nil
		l.looks()
		l.When("The dry run is over.")
		l.s.DryRun = false
		l.served()
		l.When("It is one again, and goes so.")
		l.s.DryRun = true
		l.looks()
		l.s.Deleting = true
		l.looks()
	})
}

// What the rehearsal of a whole cluster asks, and writes down.
func TestLifeOfARehearsal(t *testing.T) {
	lives(t, "rehearsal", nil, func(l *life) {
		asks := func() {
			req, problems, err := l.r.Request(context.Background(), l, l.s)
			l.Says("request of %q on %q, leaves %d, wants %t, problems %q%s", req.Service, req.On.Name, len(req.Leave), req.Desired != nil, problems, failing(err))
		}
		l.When("It is asked for.")
		asks()
		l.s.Problems = []service.Problem{{Field: "weir.dev/x", Value: "y", Want: "z"}}
		asks()
		l.s.Problems = nil
		l.declines = errOnce
		asks()
		l.declines = nil
		l.s.LoadBalancer = false
		asks()
		l.s.LoadBalancer = true
		l.When("It is written down.")
		res := balancer.Result{Request: balancer.Request{Service: "shop/web", On: onLB("kubernetes"), Desired: &service.Spec{}, Groups: []string{"rg-2"}}, Gone: []lb.LoadBalancerID{onLB("lb-9")}}
		l.eachFails(func() { l.Says("written down%s", failing(l.r.WriteDown(context.Background(), res))) }, "nodes", "record", "make", "drop")
		asks()
		l.When("It failed, is gone, or is nothing any more.")
		failed := res
		failed.Err = errOnce
		l.Says("written down%s", failing(l.r.WriteDown(context.Background(), failed)))
		leaves := res
		leaves.Desired, leaves.Without = nil, pools("shop-web")
		l.Says("written down%s", failing(l.r.WriteDown(context.Background(), leaves)))
		l.gone = true
		l.Says("written down%s", failing(l.r.WriteDown(context.Background(), res)))
		l.When("Its class is another's.")
		l.s.Class, l.s.Finalizer = new("other"), true
		l.s.Record.Class = new("other")
		l.Says("%s", l.r.WhyKept(l.s))
	})
}

// Whose it is.
func TestLifeOfAServiceOfOtherClasses(t *testing.T) {
	set := func(o *Settings) {
		o.Class = ""
		o.Service.PublicIPs = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}
	}
	lives(t, "service_of_other_classes", set, func(l *life) {
		l.s.Class, l.s.Cleanup = nil, true
		l.s.Object.Annotations[service.PIPResourceGroup] = "rg-2"
		l.When("Another service controller has served it.")
		l.eachFails(func() { l.looks() }, "reads")
		time.Sleep(time.Second)
		l.served()
		l.When("The class that is served becomes another, and it stays; and leaves.")
		l.s.Cleanup = false
		l.r.cfg.Settings.Class = "weir.dev/azure"
		l.looks()
		l.looks()
		l.s.Deleting = true
		l.looks()
		l.ends()
		l.looks()
		l.When("One that another service controller has served goes.")
		l.r.cfg.Settings.Class = ""
		l.s = Service{
			Name: "shop/web", UID: "0004", Ownership: Ownership{LoadBalancer: true, Cleanup: true, Deleting: true},
			Record: Record{Places: []string{"kubernetes"}}, Object: l.s.Object,
		}
		l.looks()
		l.ends()
		l.looks()
		l.r.cfg.Settings.Class = "weir.dev/azure"
		l.When("One of another's class, that Weir never served.")
		l.s.Deleting, l.s.UID, l.s.Object.UID, l.s.Finalizer = false, "0003", "0003", false
		l.looks()
		uid, is := l.r.States.Known("shop/web")
		l.Says("known %q %t", uid, is)
	})
}

// Restrictions that nobody keeps, and rules that name nodes.
func TestLifeOfAServiceWithRestrictions(t *testing.T) {
	lives(t, "service_with_restrictions", nil, func(l *life) {
		l.s.Object.Annotations[service.AllowedIPRanges] = "192.0.2.0/24"
		l.When("They have no effect.")
		l.served()
		l.When("They have to have one.")
		l.r.cfg.Settings.RequireEffectiveRestrictions = true
		l.r.tell.settings.RequireEffectiveRestrictions = true
		l.looks()
		l.looks()
		l.When("A security group keeps them, and names nodes.")
		l.r.cfg.Settings.Guarded, l.r.tell.settings.Guarded = true, true
		l.s.Object.Annotations[service.DisableFloatingIP] = "true"
		l.served()
		l.nodes = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
		l.served()
		l.looks()
		l.nodes = nil
		l.looks()
		l.When("Nodes that are nowhere yet.")
		l.s.WriteAgain = "x"
		l.looks()
		l.ends()
		l.fails["make"] = NotPlacedError{Node: "node n1"}
		l.looks()
		l.fails["make"] = NotPlacedError{Node: "node n1", Why: "it has no label"}
		l.looks()
		l.looks()
		l.fails["make"] = ErrNameTaken
		l.looks()
		l.looks()
		for _, err := range []error{ErrGone, ErrStillGoing, errForbidden} {
			l.fails["make"] = err
			l.looks()
		}
	})
}

// What a person may have written into a record is read with care.
func TestNamesOfARecord(t *testing.T) {
	for _, tt := range []struct{ record, names, groups string }{
		{"", "[]", "[]"},
		{" a, b ,,A,c", "[a b c]", "[a b c]"},
		{"a,../x,b", "[a ../x b]", "[a b]"},
		{"1,2,3,4,5,6,7,8,9", "[1 2 3 4 5 6 7 8 9]", "[1 2 3 4 5 6 7 8]"},
	} {
		if names, groups := fmt.Sprint(Names(tt.record)), fmt.Sprint(Groups(tt.record)); names != tt.names || groups != tt.groups {
			t.Errorf("%q: names %s, groups %s", tt.record, names, groups)
		}
	}
}

// A Service is asked what the selectors of each load balancer say of it, a letter each.
func TestWhatTheSelectorsSay(t *testing.T) {
	front := func(on map[string]string) bool { return on["tier"] == "front" }
	o := Settings{Several: []service.Configuration{{}, {Services: front}, {Namespaces: front}, {Services: front, Namespaces: front}}}
	if got := o.selection(map[string]string{"tier": "front"}, nil); got != "--y--nyn" {
		t.Error(got)
	}
	if !o.ByNamespace() || (Settings{Several: o.Several[:2]}).ByNamespace() {
		t.Error("whether the labels of namespaces count")
	}
}

// What Azure holds for a Service is compared whatever the letters.
func TestWhatAzureHoldsForAService(t *testing.T) {
	s := &Served{onLB("kubernetes"), []service.Pool{{Name: "shop-web"}}}
	at := func(balancer, pool string) lb.PoolID { return lb.PoolID{LoadBalancer: onLB(balancer), Name: pool} }
	if !s.Has(at("Kubernetes", "Shop-Web")) || s.Has(at("kubernetes", "shop")) || s.Has(at("lb-2", "shop-web")) || (*Served)(nil).Has(at("kubernetes", "shop-web")) {
		t.Error("which pools it has")
	}
	all := New(Config{}).States
	web := Service{Name: "shop/web", UID: "1"}
	if !all.Holds(web, s) || all.Holds(web, s) || !all.Holds(web, nil) || !all.Holds(web, s) {
		t.Error("what is news")
	}
	if all.Served("shop/web", "1") != s || all.Served("shop/web", "2") != nil || all.Served("shop/api", "1") != nil {
		t.Error("what others read")
	}
}

// The first of the fights is taken up again first, and one that was tried again waits for nothing.
func TestWhenAFightIsTakenUpAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	soon, late := contest.Contest{Until: now.Add(1)}, contest.Contest{Until: now.Add(2)}
	for _, tt := range []struct {
		all  []contest.Contest
		want time.Time
	}{
		{nil, time.Time{}}, {[]contest.Contest{{}}, time.Time{}}, {[]contest.Contest{late, {}, soon}, soon.Until}, {[]contest.Contest{{}, soon, late}, soon.Until},
	} {
		if got := truce(tt.all); !got.Equal(tt.want) {
			t.Errorf("%v: %s", tt.all, got)
		}
	}
	if got := lookAt("LB", now, time.Hour); !got.Equal(lookAt("lb", now, time.Hour)) || !got.After(now) || got.After(now.Add(time.Hour)) || !lookAt("lb", got, time.Hour).Equal(got.Add(time.Hour)) {
		t.Errorf("looked at at %s", got)
	}
}

// Whether a record is written down already.
func TestWhatIsOnRecord(t *testing.T) {
	const ours = ""
	record := Record{Places: []string{"kubernetes"}, Groups: []string{"rg-2"}}
	none := Record{}
	for _, tt := range []struct {
		about string
		has   Record
		s     Ownership
		next  Record
		want  bool
	}{
		{"as it is", record, Ownership{Finalizer: true}, record, true},
		{"the finalizer is missing", record, Ownership{}, record, false},
		{"another place", record, Ownership{Finalizer: true}, Record{Places: []string{"lb-2"}, Groups: record.Groups}, false},
		{"another group", record, Ownership{Finalizer: true}, Record{Places: record.Places}, false},
		{"another class", record, Ownership{Finalizer: true}, Record{Places: record.Places, Groups: record.Groups, Class: new("x")}, false},
		{"nothing is left", none, Ownership{}, none, true},
		{"nothing is left, and the finalizer is there", none, Ownership{Finalizer: true}, none, false},
		{"nothing is left, and that of another is there", none, Ownership{Cleanup: true, LoadBalancer: true}, none, false},
		{"that of another does not keep it", record, Ownership{Cleanup: true, LoadBalancer: true}, record, false},
		{"it does while it is being deleted", record, Ownership{Cleanup: true, LoadBalancer: true, Deleting: true}, record, true},
		{"nobody keeps one that is being deleted", record, Ownership{LoadBalancer: true, Deleting: true}, record, false},
	} {
		if got := (&Placement{Record: tt.has}).recorded(Service{Ownership: tt.s}, tt.next, ours); got != tt.want {
			t.Errorf("%s: %t", tt.about, got)
		}
	}
	for _, tt := range []struct {
		p    Placement
		want bool
	}{{Placement{}, false}, {Placement{Record: record}, true}, {Placement{Record: record, free: true}, false}, {Placement{free: true}, false}} {
		if tt.p.leaves() != tt.want {
			t.Errorf("%+v", tt.p)
		}
	}
	p := Placement{}
	for _, step := range []struct{ shown, lost bool }{{false, false}, {true, false}, {false, true}, {false, true}, {true, false}} {
		if p.shows(step.shown); p.lostFinalizer(Service{Ownership: Ownership{Finalizer: step.shown}}) != step.lost {
			t.Errorf("after %+v: %+v", step, p)
		}
	}
}
