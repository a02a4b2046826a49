// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// Users can edit a record, so it is parsed defensively.
func TestNamesOfARecord(t *testing.T) {
	for _, tt := range []struct{ record, names, groups string }{
		{"", "[]", "[]"},
		{" a, b ,,A,c", "[a b c]", "[a b c]"},
		{"a,../x,b", "[a ../x b]", "[a b]"},
		{"1,2,3,4,5,6,7,8,9", "[1 2 3 4 5 6 7 8 9]", "[1 2 3 4 5 6 7 8]"},
	} {
		if names, groups := fmt.Sprint(ParseNames(tt.record)), fmt.Sprint(ParseGroups(tt.record)); names != tt.names || groups != tt.groups {
			t.Errorf("%q: names %s, groups %s", tt.record, names, groups)
		}
	}
}

// The selector result is one letter per load balancer.
func TestSelectorMessages(t *testing.T) {
	front := func(on map[string]string) bool { return on["tier"] == "front" }
	o := Settings{Configurations: []service.Configuration{{}, {Services: front}, {Namespaces: front}, {Services: front, Namespaces: front}}}
	if got := o.selectorResult(map[string]string{"tier": "front"}, nil); got != "--y--nyn" {
		t.Error(got)
	}
	if !o.ByNamespace() || (Settings{Configurations: o.Configurations[:2]}).ByNamespace() {
		t.Error("whether the labels of namespaces count")
	}
}

// Names are compared case-insensitively.
func TestResourcesOfAService(t *testing.T) {
	s := &ObservedPools{onLB("kubernetes"), []service.Pool{{Name: "shop-web"}}}
	at := func(balancer, pool string) lb.PoolID { return lb.PoolID{LoadBalancer: onLB(balancer), Name: pool} }
	if !s.HasPool(at("Kubernetes", "Shop-Web")) || s.HasPool(at("kubernetes", "shop")) || s.HasPool(at("lb-2", "shop-web")) || (*ObservedPools)(nil).HasPool(at("kubernetes", "shop-web")) {
		t.Error("which pools it has")
	}
	all := New(Config{}).States
	web := Service{Name: "shop/web", UID: "1"}
	if !all.SetObserved(web, s) || all.SetObserved(web, s) || !all.SetObserved(web, nil) || !all.SetObserved(web, s) {
		t.Error("what is news")
	}
	if all.ObservedFor("shop/web", "1") != s || all.ObservedFor("shop/web", "2") != nil || all.ObservedFor("shop/api", "1") != nil {
		t.Error("what others read")
	}
}

// The earliest conflict is retried first; one already retried does not wait.
func TestConflictRetryTime(t *testing.T) {
	now := time.Unix(1000, 0)
	soon, late := conflict.Conflict{Until: now.Add(1)}, conflict.Conflict{Until: now.Add(2)}
	for _, tt := range []struct {
		conflicts []conflict.Conflict
		want      time.Time
	}{
		{nil, time.Time{}}, {[]conflict.Conflict{{}}, time.Time{}}, {[]conflict.Conflict{late, {}, soon}, soon.Until}, {[]conflict.Conflict{{}, soon, late}, soon.Until},
	} {
		if got := firstConflictRetry(tt.conflicts); !got.Equal(tt.want) {
			t.Errorf("%v: %s", tt.conflicts, got)
		}
	}
	if got := nextResync("LB", now, time.Hour); !got.Equal(nextResync("lb", now, time.Hour)) || !got.After(now) || got.After(now.Add(time.Hour)) || !nextResync("lb", got, time.Hour).Equal(got.Add(time.Hour)) {
		t.Errorf("looked at at %s", got)
	}
}

// Whether a record is already persisted.
func TestPersistedRecord(t *testing.T) {
	const ours = ""
	record := Record{LoadBalancers: []string{"kubernetes"}, Groups: []string{"rg-2"}}
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
		{"another place", record, Ownership{Finalizer: true}, Record{LoadBalancers: []string{"lb-2"}, Groups: record.Groups}, false},
		{"another group", record, Ownership{Finalizer: true}, Record{LoadBalancers: record.LoadBalancers}, false},
		{"another class", record, Ownership{Finalizer: true}, Record{LoadBalancers: record.LoadBalancers, Groups: record.Groups, Class: new("x")}, false},
		{"nothing is left", none, Ownership{}, none, true},
		{"nothing is left, and the finalizer is there", none, Ownership{Finalizer: true}, none, false},
		{"nothing is left, and that of another is there", none, Ownership{Cleanup: true, LoadBalancer: true}, none, false},
		{"that of another does not keep it", record, Ownership{Cleanup: true, LoadBalancer: true}, record, false},
		{"it does while it is being deleted", record, Ownership{Cleanup: true, LoadBalancer: true, Deleting: true}, record, true},
		{"nobody keeps one that is being deleted", record, Ownership{LoadBalancer: true, Deleting: true}, record, false},
	} {
		if got := (&Placement{Record: tt.has}).isRecorded(Service{Ownership: tt.s}, tt.next, ours); got != tt.want {
			t.Errorf("%s: %t", tt.about, got)
		}
	}
	for _, tt := range []struct {
		p    Placement
		want bool
	}{{Placement{}, false}, {Placement{Record: record}, true}, {Placement{Record: record, free: true}, false}, {Placement{free: true}, false}} {
		if tt.p.hasParts() != tt.want {
			t.Errorf("%+v", tt.p)
		}
	}
	p := Placement{}
	for _, step := range []struct{ shown, lost bool }{{false, false}, {true, false}, {false, true}, {false, true}, {true, false}} {
		if p.recordFinalizer(step.shown); p.hasLostFinalizer(Service{Ownership: Ownership{Finalizer: step.shown}}) != step.lost {
			t.Errorf("after %+v: %+v", step, p)
		}
	}
}
