// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
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

// eachFails plays a part of a life once per failing ledger method, then without failures.
func (l *life) eachFails(part func(), methods ...string) {
	for _, m := range methods {
		l.fails[m] = errOnce
		part()
		delete(l.fails, m)
	}
	part()
}

// From the first request to the deletion.
func TestLifeOfAService(t *testing.T) {
	set := func(o *Settings) {
		o.ResyncPeriod = time.Hour
		o.Service.PublicIPs = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}
	}
	lives(t, "service", set, func(l *life) {
		itIsMade(l)
		itChanges(l)
		itIsUndone(l)
		itLeaves(l)
		itIsMissed(l)
	})
}

// An unused public IP is reported once and deleted when the user allows it.
func TestLifeOfAServiceWithAnUnusedPublicIP(t *testing.T) {
	unused := func(r *loadbalancer.Result) {
		r.Unused = []publicip.Unused{{PublicIP: lb.PublicIP{
			ID: lb.ResourceID{ResourceGroup: "rg", Name: "kubernetes-a1-IPv4"}, Address: lost[0], Family: lb.IPv4,
		}}}
	}
	lives(t, "service_with_an_unused_public_ip", func(o *Settings) { o.ResyncPeriod = time.Hour }, func(l *life) {
		l.served()
		l.BeginChapter("It moves back to a load balancer, and does not use what it had on the other one.")
		l.s.RetryToken = "please"
		l.looks()
		l.ends(unused)
		l.looks()
		l.BeginChapter("It is compared again.")
		time.Sleep(time.Hour)
		l.looks()
		l.ends(unused)
		l.looks()
		l.BeginChapter("A person allows it, and Azure refuses at first.")
		l.s.AllowRemoval = true
		time.Sleep(l.looks())
		l.ends(func(r *loadbalancer.Result) {
			r.Err = &armerror.Fault{Class: armerror.Terminal, Code: "InternalServerError", Err: errors.New("not now")}
		})
		time.Sleep(l.looks())
		l.looks()
		l.ends()
		l.looks()
		l.BeginChapter("Nothing is left of that.")
		l.looks()
	})
}

// itIsMade covers a new Service until it is in sync.
func itIsMade(l *life) {
	l.held = pools("shop-web")
	l.BeginChapter("It is new, and cannot be written down at first.")
	l.eachFails(func() { l.looks() }, "record")
	l.BeginChapter("Azure refuses, twice; what is forbidden is told of once.")
	l.ends(err("no"))
	time.Sleep(l.looks())
	l.looks()
	l.ends(func(r *loadbalancer.Result) {
		r.Err = &armerror.Fault{Class: armerror.Retriable, Code: conflict.CodeUpdating, Err: errors.New("somebody is writing")}
	})
	time.Sleep(l.looks())
	l.looks()
	l.BeginChapter("It is there, and can be written down at last.")
	l.ends(func(r *loadbalancer.Result) {
		r.Message, r.MissingPools, r.DeletedLoadBalancers = "the rules have no effect", pools("old"), []lb.LoadBalancerID{onLB("lb-9")}
		r.Retained = []plan.RetainedPart{{Pool: pools("other")[0], Members: []string{lost[0].String()}}}
	})
	l.eachFails(func() { l.looks() }, "nodes", "make", "drop", "publish", "contested")
}

// itChanges covers resyncs and edits.
func itChanges(l *life) {
	l.BeginChapter("It is looked at again in time, with the same note and other addresses.")
	l.looks()
	time.Sleep(l.looks())
	l.looks()
	l.ends(func(r *loadbalancer.Result) {
		r.Message, r.Changed = "the rules have no effect", false
		r.Addresses = append([]netip.Addr{{}}, netip.MustParseAddr("198.18.0.2"))
		r.Retained = []plan.RetainedPart{{Pool: pools("other")[0], Members: []string{lost[0].String()}}}
	})
	l.looks()
	l.BeginChapter("Somebody writes another status.")
	l.s.StatusAddresses = lost
	l.looks()
	l.BeginChapter("Another annotation: twice misspelt, and then right.")
	l.s.Object.Annotations = map[string]string{"service.beta.kubernetes.io/azure-nonsense": "true"}
	l.looks()
	l.looks()
	l.s.Object.Annotations = map[string]string{service.PIPResourceGroup: "RG-2", service.AllowedIPRanges: "192.0.2.0/24"}
	l.eachFails(func() { time.Sleep(l.looks() % time.Minute) }, "reads")
	l.ends()
	l.looks()
}

// itIsUndone covers foreign changes and errors that only the user can fix.
func itIsUndone(l *life) {
	l.BeginChapter("Somebody undoes it.")
	l.r.States.AddLostPool("shop/web", LostPool{"KUBERNETES", "shop-web"})
	l.looks()
	l.r.States.AddLostPool("shop/web", LostPool{"KUBERNETES", "kubernetes"})
	l.looks()
	fights := []conflict.Conflict{{Resource: "rule a", Until: time.Now().Add(time.Minute)}, {Resource: "rule b"}}
	l.ends(func(r *loadbalancer.Result) { r.Conflicts = fights })
	l.looks()
	l.s.RetryToken = "now"
	l.looks()
	l.ends(func(r *loadbalancer.Result) { r.Conflicts = fights })
	l.looks()
	fights = []conflict.Conflict{{Resource: "rule a", Until: time.Now().Add(time.Hour)}, {Resource: "rule b", Until: time.Now().Add(time.Minute)}}
	l.s.RetryToken = "and again"
	l.looks()
	l.ends(func(r *loadbalancer.Result) { r.Conflicts = fights })
	l.looks()
	l.BeginChapter("A problem of its own, which cannot be mended but by people.")
	l.s.Problems = []service.Problem{{Field: "weir.dev/x", Value: "y", Expected: "z"}, {Field: "weir.dev/w", Value: "v", Expected: "u"}}
	l.looks()
	l.looks()
	l.s.Problems = nil
	l.s.Object.Annotations[service.IdleTimeout] = "never"
	l.looks()
	delete(l.s.Object.Annotations, service.IdleTimeout)
	l.looks()
	l.ends()
	l.looks()
}

// itLeaves covers the removal.
func itLeaves(l *life) {
	l.BeginChapter("It becomes one of another type, is taken back, and goes.")
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
	l.ends(func(r *loadbalancer.Result) { r.MissingPools = pools("shop-web") })
	l.eachFails(func() { l.looks() }, "drop", "publish", "contested", "record")
	l.looks()
	l.BeginChapter("Somebody takes its finalizer off; what is known of it does not count then.")
	l.s.LoadBalancer = true
	l.served()
	l.looks()
	l.s.Finalizer = false
	l.looks()
	l.ends()
	l.looks()
}

// itIsMissed covers a Service that an informer or a new process does not show yet.
func itIsMissed(l *life) {
	l.BeginChapter("It is not there for a moment, and then it is.")
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
	l.BeginChapter("It is not there for a moment, which costs it what it has; and it gets that again, which nothing takes away.")
	l.s.LoadBalancer = true
	l.served()
	l.gone = true
	l.looks()
	l.gone = false
	l.ends()
	l.looks()
	l.ends()
	l.looks()
	l.BeginChapter("Another process starts, and finds no room at first.")
	l.starts()
	l.declines = errors.New("no room")
	l.looks()
	l.declines = nil
	time.Sleep(time.Second)
	l.served()
	l.BeginChapter("It is back, and is deleted before anything was asked.")
	l.s.UID, l.s.Object.UID, l.s.Record, l.s.Finalizer, l.s.StatusAddresses = "0005", "0005", Record{}, false, nil
	l.fails["record"] = errOnce
	l.looks()
	delete(l.fails, "record")
	l.s.Deleting = true
	l.looks()
	l.gone = true
	l.looks()
	uid, ok := l.r.States.KnownUID("shop/web")
	l.AddLine("known %q %t", uid, ok)
}

// Labels move it; pools must fill first.
func TestLifeOfAServiceThatMoves(t *testing.T) {
	byTier := func(on map[string]string) bool { return on["tier"] == "front" }
	set := func(o *Settings) {
		o.Configurations = []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2", Services: byTier, Namespaces: byTier}}
	}
	lives(t, "service_that_moves", set, func(l *life) {
		l.BeginChapter("The labels of its namespace are not known yet.")
		l.eachFails(func() { l.looks() }, "labels")
		l.ends()
		l.looks()
		l.BeginChapter("Its namespace moves, and pools there have to be filled first.")
		l.labels = map[string]string{"tier": "front"}
		l.looks()
		fills := []lb.PoolID{{LoadBalancer: onLB("lb-2"), Name: "shop-web"}}
		filling := func(r *loadbalancer.Result) { r.FillingPools, r.Addresses = fills, nil }
		l.ends(filling)
		l.eachFails(func() { l.looks() }, "make")
		l.AddLine("filled: %t; another pool: %t; another Service: %t", l.r.States.AddFilledPool("shop/web", fills[0]),
			l.r.States.AddFilledPool("shop/web", pools("shop-web")[0]), l.r.States.AddFilledPool("shop/api", fills[0]))
		l.looks()
		l.ends()
		l.looks()
		l.BeginChapter("There is no room for a change; rehearsals would have to wait, and it is taken back.")
		l.labels = map[string]string{}
		l.declines = errors.New("no room")
		l.looks()
		l.looks()
		l.declines = &armerror.Fault{Class: armerror.Retriable, Code: dryrun.CodeReadLimit, RetryAt: time.Now().Add(time.Minute), Err: errors.New("no share")}
		l.looks()
		l.declines = nil
		time.Sleep(l.looks())
		l.looks()
		l.BeginChapter("Azure is asked once more, and asks to wait; it is deleted meanwhile, which ends nothing.")
		l.ends(func(r *loadbalancer.Result) {
			r.Err = &armerror.Fault{Class: armerror.Retriable, Code: "TooManyRequests", RetryAt: time.Now().Add(time.Minute), Err: errors.New("slowly")}
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
		l.BeginChapter("A new one of its name is filled first, where it does not move, and is done after a while.")
		l.s.Deleting, l.s.UID, l.s.Object.UID = false, "0002", "0002"
		l.looks()
		l.ends(func(r *loadbalancer.Result) { r.FillingPools = pools("shop-web") })
		l.eachFails(func() { l.looks() }, "publish")
		time.Sleep(l.looks())
		l.looks()
		l.ends(func(r *loadbalancer.Result) { r.FillingPools = pools("shop-web") })
		l.looks()
		l.AddLine("another BackendPool went: %t %t", l.r.States.AddLostPool("shop/web", LostPool{"kubernetes", "web"}), l.r.States.AddLostPool("shop/x", LostPool{}))
		l.looks()
		l.r.States.AddLostPool("shop/web", LostPool{"Kubernetes", "Shop-Web"})
		l.looks()
		l.BeginChapter("It becomes one of another type while a change is under way.")
		l.s.LoadBalancer = false
		l.ends()
		l.looks()
	})
}

// It would lose its address, as would five of six.
func TestLifeOfAServiceThatWouldLoseItsAddress(t *testing.T) {
	lives(t, "service_that_would_lose", nil, func(l *life) {
		l.BeginChapter("It is served, as others are.")
		l.served()
		l.others = []string{"a/1", "a/2", "a/3", "a/4", "a/5", "shop/web"}
		for _, n := range l.others[:5] {
			l.r.States.byName[n] = newEntry(n, State{})
			l.r.States.byName[n].view = view{hasAddress: true, isResolved: true}
		}
		loses := func(r *loadbalancer.Result) { r.Err = &loadbalancer.AddressLossError{Addresses: lost} }
		l.BeginChapter("All would lose theirs.")
		for _, n := range l.others[:5] {
			l.r.removals.AddService(n, time.Now())
		}
		l.s.RetryToken = "x"
		l.looks()
		l.ends(loses)
		for range 4 {
			time.Sleep(l.looks() % time.Hour)
		}
		l.BeginChapter("It is asked again: it would still lose it; and then it would not.")
		l.ends(loses)
		time.Sleep(l.looks())
		l.looks()
		l.ends(func(r *loadbalancer.Result) { r.Changed = false })
		l.looks()
		l.BeginChapter("Once more, and a person allows it.")
		l.s.RetryToken = "y"
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
		l.BeginChapter("It is gone without a word.")
		l.gone = true
		for range 4 {
			time.Sleep(l.looks())
		}
		l.BeginChapter("It is back for a moment, and gone.")
		l.gone = false
		l.looks()
		l.ends()
		l.looks()
		l.gone = true
		for range 2 {
			time.Sleep(l.looks())
		}
		l.BeginChapter("The others are mended, and it goes.")
		for _, n := range l.others[:5] {
			l.r.removals.RemoveService(n)
		}
		l.r.removals.RemoveService("shop/web")
		l.looks()
		l.ends()
		l.looks()
		l.BeginChapter("One that went while nobody watched, and one that is known.")
		l.AddLine("%t %t", l.r.States.AddGone("shop/web", "0001-0000", "lb-7"), l.r.States.AddGone("shop/web", "0001-0000", "lb-8"))
		for range 3 {
			time.Sleep(l.looks())
		}
		l.ends()
		l.looks()
	})
}
