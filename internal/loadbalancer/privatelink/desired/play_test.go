// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

const (
	network   = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v"
	balancer  = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes"
	frontendA = balancer + "/frontendIPConfigurations/aaaa"
	frontendB = balancer + "/frontendIPConfigurations/bbbb"
)

func settings() Settings {
	return Settings{ClusterName: "k8s", Group: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}, VirtualNetwork: network}
}

func frontend() Frontend {
	return Frontend{ID: frontendA, Name: "aaaa", Family: lb.IPv4, LoadBalancer: LoadBalancer{Location: "eastus", SKU: lb.Standard}}
}

// asks is a Service that requests a Private Link Service; day orders Services by age.
func asks(name string, day int, changes ...func(*service.PrivateLink)) FrontendService {
	l := &service.PrivateLink{Subnet: "nodes", Count: 1, SetAnnotations: map[string]string{}}
	for _, change := range changes {
		change(l)
	}
	return FrontendService{Service: name, CreatedAt: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC), Link: l}
}

func count(n int) func(*service.PrivateLink) {
	return func(l *service.PrivateLink) { l.Count, l.SetAnnotations[service.PLSCount] = n, fmt.Sprint(n) }
}

func fixed(names ...string) func(*service.PrivateLink) {
	return func(l *service.PrivateLink) {
		for _, a := range names {
			l.Addresses = append(l.Addresses, netip.MustParseAddr(a))
		}
		l.Count = max(l.Count, len(names))
	}
}

func called(name string) func(*service.PrivateLink) {
	return func(l *service.PrivateLink) { l.Name, l.SetAnnotations[service.PLSName] = name, name }
}

// azure keeps Private Link Services in memory. A running operation completes with the next call,
// unless it hangs.
type azure struct {
	links  map[string]lb.PrivateLinkService
	subnet lb.Subnet
	hangs  bool
	writes []string
}

func (a *azure) seen() []lb.PrivateLinkService {
	var links []lb.PrivateLinkService
	for _, p := range a.links {
		links = append(links, p)
	}
	return links
}

// do runs a step twice, because steps are idempotent.
func (a *azure) do(s Step) {
	for range 2 {
		key := s.Service.ID.Key()
		switch s.Action {
		case ActionCreate, ActionUpdate:
			p := s.Service
			p.Provisioning = lb.Updating
			p.Connections = a.links[key].Connections
			a.links[key] = p
		case ActionOpenSubnet:
			a.subnet.LinkPolicies = s.Subnet.LinkPolicies
		case ActionDisconnect:
			p := a.links[key]
			p.Connections = slices.Clone(p.Connections)
			for i := range p.Connections {
				if p.Connections[i].Name == s.Connection.Name {
					p.Connections[i].Provisioning = lb.Deleting
				}
			}
			a.links[key] = p
		case ActionDelete:
			if p, ok := a.links[key]; ok {
				p.Provisioning = lb.Deleting
				a.links[key] = p
			}
		}
	}
	a.writes = append(a.writes, strings.TrimSpace(string(s.Action)+" "+s.Service.ID.Name+" "+s.Connection.Name))
}

// settle completes all running operations.
func (a *azure) settle() {
	if a.hangs {
		return
	}
	for key, p := range a.links {
		p.Connections = slices.DeleteFunc(slices.Clone(p.Connections), func(c lb.PrivateEndpointConnection) bool { return c.Provisioning == lb.Deleting })
		if p.Provisioning == lb.Deleting {
			delete(a.links, key)
			continue
		}
		p.Provisioning = lb.Succeeded
		a.links[key] = p
	}
	a.subnet.Provisioning = lb.Succeeded
}

// play runs steps until one writes nothing, and returns it.
func (a *azure) play(t interface {
	Helper()
	Fatalf(string, ...any)
}, f Frontend, set Settings, sharers []FrontendService) Step {
	t.Helper()
	for range 40 {
		v := ResolveOwner(f, set, sharers, a.seen())
		step := NextStep(f, v, a.seen(), &a.subnet, set)
		sharers = recorded(sharers, v.Owner)
		switch {
		case step.IsWrite():
			a.do(step)
		case step.Action != ActionWait || a.hangs:
			return step
		}
		before := a.seen()
		a.settle()
		if step.Action == ActionWait && len(a.seen()) == len(before) && reflect.DeepEqual(a.links, mapOf(before)) {
			return step
		}
	}
	t.Fatalf("no end: %v", a.writes)
	return Step{}
}

// recorded marks one Service as the recorded owner.
func recorded(sharers []FrontendService, owner string) []FrontendService {
	sharers = slices.Clone(sharers)
	for i := range sharers {
		sharers[i].IsRecordedOwner = sharers[i].Service == owner
	}
	return sharers
}

func mapOf(links []lb.PrivateLinkService) map[string]lb.PrivateLinkService {
	m := map[string]lb.PrivateLinkService{}
	for _, p := range links {
		m[p.ID.Key()] = p
	}
	return m
}

func drawLink(t *rapid.T) lb.PrivateLinkService {
	p := lb.PrivateLinkService{
		ID:           lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePrivateLinkService, Name: rapid.SampledFrom([]string{"pls-aaaa", "PLS-aaaa", "mine", "other"}).Draw(t, "name")},
		Etag:         "1",
		Provisioning: rapid.SampledFrom([]lb.Provisioning{lb.Succeeded, lb.Succeeded, lb.Failed, lb.Updating, lb.Deleting}).Draw(t, "state"),
		Frontends:    rapid.SampledFrom([][]string{{frontendA}, {strings.ToUpper(frontendA)}, {frontendB}, {frontendB, frontendA}, nil}).Draw(t, "frontends"),
		Tags:         map[string]string{},
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "addresses") {
		n := lb.NATAddress{Name: fmt.Sprintf("dynamic-%d", i), Subnet: network + "/subnets/" + rapid.SampledFrom([]string{"nodes", "NODES", "nat"}).Draw(t, "subnet"), Primary: i == 0}
		if rapid.Bool().Draw(t, "static") {
			n.Static, n.Address = true, netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(7, 9).Draw(t, "address"))})
		}
		p.NAT = append(p.NAT, n)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "connections") {
		p.Connections = append(p.Connections, lb.PrivateEndpointConnection{Name: fmt.Sprintf("pe%d", i), Provisioning: rapid.SampledFrom([]lb.Provisioning{lb.Succeeded, lb.Deleting, lb.Updating}).Draw(t, "connection")})
	}
	if owner := rapid.SampledFrom([]string{"", "n/a", "n/b", "n/gone"}).Draw(t, "owner"); owner != "" {
		p.Tags[rapid.SampledFrom([]string{service.TagLinkOwner, strings.ToUpper(service.TagLinkOwner), service.TagLinkOwnerBefore}).Draw(t, "tag")] = owner
	}
	if cluster := rapid.SampledFrom([]string{"k8s", "K8S", "k8s", "another", ""}).Draw(t, "cluster"); cluster != "" {
		p.Tags[service.TagCluster] = cluster
	}
	return p
}

func drawAsked(t *rapid.T) service.PrivateLink {
	l := *asks("", 1, count(rapid.IntRange(1, 3).Draw(t, "count"))).Link
	l.Name = rapid.SampledFrom([]string{"", "", "mine"}).Draw(t, "called")
	if rapid.Bool().Draw(t, "fixed") {
		l.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(7, 9).Draw(t, "at"))})}
	}
	l.ProxyProtocol = rapid.Bool().Draw(t, "proxy")
	return l
}

func drawSharer(t *rapid.T, name string) FrontendService {
	s := asks(name, rapid.IntRange(1, 3).Draw(t, "day"))
	*s.Link = drawAsked(t)
	switch rapid.IntRange(0, 4).Draw(t, "asks") {
	case 0:
		s.Link = nil
	case 1:
		s.Link, s.Problems = nil, []service.Problem{{Field: service.PLSCount, Value: "x", Expected: "a number"}}
	}
	return s
}

func drawAll(t *rapid.T) (*azure, []FrontendService, Settings) {
	a := &azure{links: map[string]lb.PrivateLinkService{}, subnet: lb.Subnet{Name: "nodes", LinkPolicies: rapid.Bool().Draw(t, "policies"), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}}
	for range rapid.IntRange(0, 3).Draw(t, "links") {
		p := drawLink(t)
		a.links[p.ID.Key()] = p
	}
	var sharers []FrontendService
	for _, name := range []string{"n/a", "n/b", "n/c"}[:rapid.IntRange(0, 3).Draw(t, "sharers")] {
		sharers = append(sharers, drawSharer(t, name))
	}
	set := settings()
	set.CanOpenSubnets = rapid.Bool().Draw(t, "opens")
	return a, sharers, set
}

// From any state and requests: steps end, and then everything is as wanted or a reason is given.
// Resources that the cluster did not create, and those of other frontends, are unchanged.
func TestStepsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, sharers, set := drawAll(t)
		before := mapOf(a.seen())
		end := a.play(t, frontend(), set, sharers)
		v := ResolveOwner(frontend(), set, sharers, a.seen())
		for key, p := range before {
			if !isForeign(p, set) && (hasFrontend(p, frontendA) || len(p.Frontends) == 0) || p.Provisioning == lb.Deleting {
				continue
			}
			for _, w := range a.writes {
				if name := strings.Fields(w)[len(strings.Fields(w))-1]; p.ID.Name == name {
					t.Fatalf("touched %s: %v", key, a.writes)
				}
			}
		}
		switch end.Action {
		case ActionInSync:
			for _, p := range linksOn(frontend(), a.seen()) {
				if !isForeign(p, set) && (v.Desired == nil || p.ID.Key() != v.Desired.ID.Key()) {
					t.Fatalf("left %s", p.ID.Name)
				}
			}
			if v.Desired != nil {
				p, found := findByID(a.seen(), v.Desired.ID)
				if !found || !hasFrontend(p, frontendA) || !isSameNAT(p.NAT, v.Desired.NAT) || p.ProxyProtocol != v.Desired.ProxyProtocol || OwnerOf(p) != v.Owner || isForeign(p, set) {
					t.Fatalf("not as wanted: %+v", p)
				}
			}
		case ActionWait, ActionReject:
			if end.Reason == "" {
				t.Fatalf("%+v", end)
			}
		case ActionKeep:
			if len(v.Problems) == 0 {
				t.Fatal("held, and nobody was told why")
			}
		default:
			t.Fatalf("ended in %s", end.Action)
		}
	})
}

// A change keeps the names of kept addresses, yields exactly the wanted ones, and one primary.
func TestAddressesBecomeAsWanted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got := drawLink(t).NAT
		want := buildDesired(drawAsked(t), "n/a", frontend(), settings()).NAT
		next := mergeNAT(got, want)
		names := map[string]bool{}
		primaries := 0
		for _, n := range next {
			names[n.Name] = true
			if n.Primary {
				primaries++
			}
		}
		if !isSameNAT(next, want) || len(names) != len(next) || primaries != 1 && !isSameNAT(got, want) {
			t.Fatalf("%+v became %+v for %+v", got, next, want)
		}
		for _, n := range next {
			at := slices.IndexFunc(got, func(m lb.NATAddress) bool { return m.Name == n.Name })
			if at >= 0 && (got[at].Static != n.Static || got[at].Address != n.Address || got[at].Subnet != n.Subnet) {
				t.Fatalf("%s means another address: %+v became %+v", n.Name, got, next)
			}
		}
	})
}

// A verdict does not depend on the order of Services, and an owner keeps its resource while it
// requests it.
func TestOwnershipHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, sharers, set := drawAll(t)
		v := ResolveOwner(frontend(), set, sharers, a.seen())
		shuffled := rapid.Permutation(sharers).Draw(t, "order")
		if w := ResolveOwner(frontend(), set, shuffled, a.seen()); w.Owner != v.Owner || !reflect.DeepEqual(v.Desired, w.Desired) || w.KeepCurrent != v.KeepCurrent {
			t.Fatalf("%+v in another order is %+v", v, w)
		}
		if v.Desired == nil || len(linksOn(frontend(), a.seen())) > 1 {
			return // with several, one may be deleted whose owner keeps the other
		}
		end := a.play(t, frontend(), set, sharers)
		if w := ResolveOwner(frontend(), set, sharers, a.seen()); end.Action == ActionInSync && w.Owner != v.Owner {
			t.Fatalf("%s owned it, and then %s", v.Owner, w.Owner)
		}
	})
}
