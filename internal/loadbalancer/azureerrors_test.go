// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// lists is an Azure whose list calls work; one operation fails.
type lists struct {
	Azure
	balancers []lb.LoadBalancer
	ips       []lb.PublicIP
	fails     string
	groups    []string // read groups
	asked     []string // load balancers read one by one
}

var errNotNow = errors.New("not now")

func (l *lists) ListLoadBalancers(context.Context, string, string) ([]lb.LoadBalancer, error) {
	if l.fails == "load balancers" {
		return nil, errNotNow
	}
	return l.balancers, nil
}

func (l *lists) GetLoadBalancer(_ context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	if l.asked = append(l.asked, id.Name); l.fails == "load balancer" {
		return lb.LoadBalancer{}, errNotNow
	}
	return lb.LoadBalancer{}, &armerror.Fault{Class: armerror.Stale, Err: errNotNow}
}

func (l *lists) ListPublicIPs(_ context.Context, _, group string) ([]lb.PublicIP, error) {
	l.groups = append(l.groups, group)
	if l.fails == "public IPs" {
		return nil, errNotNow
	}
	return l.ips, nil
}

// reaching is a Cluster without Services.
type reaching struct{ Cluster }

func (reaching) ExposedServices() []ExposedService { return nil }

func (reaching) NamespaceBounds(string) service.NamespaceSettings { return service.NamespaceSettings{} }

func listed(azure Azure) *LoadBalancers {
	return New(Config{Azure: azure, Cluster: reaching{}, Settings: Settings{
		Settings:       service.Settings{ClusterName: "kubernetes", PublicIPs: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "ips"}},
		Place:          lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg"},
		Configurations: []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2"}}, MaxRules: 100,
	}})
}

// An unreadable resource group fails only checks of that group.
func TestUnreadableResourceGroups(t *testing.T) {
	azure := &lists{}
	b := listed(azure)
	if err := b.CheckReadable(t.Context(), "rg-2"); err != nil || azure.groups[0] != "rg-2" {
		t.Errorf("%v, asked for %v", err, azure.groups)
	}
	azure.fails = "public IPs"
	if err := b.CheckReadable(t.Context(), "rg-2"); !errors.Is(err, errNotNow) || !strings.Contains(err.Error(), "resource group rg-2") {
		t.Error(err)
	}
}

// An incomplete read reports no leftovers: what was not seen may exist.
func TestLeftoversOfAnAzureThatFails(t *testing.T) {
	for _, fails := range []string{"load balancer", "public IPs"} {
		if leftovers, err := listed(&lists{fails: fails}).ListOrphans(t.Context()); !errors.Is(err, errNotNow) || leftovers != nil || !strings.Contains(err.Error(), fails) {
			t.Errorf("%s: %v, %v", fails, leftovers, err)
		}
	}
}

// Leftovers reads only the cluster's load balancers; foreign ones may be large.
func TestLeftoversAskForNoMoreThanTheClustersOwn(t *testing.T) {
	azure := &lists{}
	if _, err := listed(azure).ListOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(azure.asked); got != "[kubernetes kubernetes-internal lb-2 lb-2-internal]" {
		t.Errorf("asked for %s", got)
	}
}

// If load balancers cannot be listed, no Service is placed.
func TestNoServiceIsPlacedBeforeRead(t *testing.T) {
	azure := &lists{fails: "load balancers"}
	b := listed(azure)
	for _, p := range []PlacementRequest{{Service: "shop/web", Desired: &service.Spec{}}, {Service: "shop/web"}} {
		if on, leave, err := b.FindPlacement(t.Context(), p); !errors.Is(err, errNotNow) || on != "" || leave != nil {
			t.Errorf("on %q, leaves %v: %v", on, leave, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	b.cache.listLock <- struct{}{}
	cancel()
	if _, _, err := b.FindPlacement(ctx, PlacementRequest{Service: "shop/web"}); !errors.Is(err, context.Canceled) {
		t.Errorf("while another reads: %v", err)
	}
}

// A Service is placed where its requested address is.
func TestAnAddressPinsItsService(t *testing.T) {
	ip := netip.MustParseAddr("198.18.0.7")
	id := lb.ResourceID{SubscriptionID: "s", ResourceGroup: "ips", Type: lb.TypePublicIP, Name: "mine"}
	azure := &lists{
		ips: []lb.PublicIP{{ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "ips", Type: lb.TypePublicIP, Name: "other"}, Address: netip.MustParseAddr("198.18.0.8")}, {ID: id, Address: ip}},
		balancers: []lb.LoadBalancer{
			{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1"},
			{ID: lb.LoadBalancerID{Name: "lb-2"}, Etag: "1", Frontends: []lb.Frontend{{Name: "x", PublicIP: id.String()}}},
			{ID: lb.LoadBalancerID{Name: "lb-2-internal"}, Etag: "1", Frontends: []lb.Frontend{{Name: "y", Subnet: "nodes", PrivateIP: netip.MustParseAddr("10.0.0.4")}}},
		},
	}
	for about, tt := range map[string]struct {
		of   service.Frontend
		want string
	}{
		"by address":           {service.Frontend{PublicIP: &service.PublicIP{ID: id, Address: ip}}, "lb-2"},
		"by name":              {service.Frontend{PublicIP: &service.PublicIP{ID: id, UserNamed: true}}, "lb-2"},
		"by a private address": {service.Frontend{Frontend: lb.Frontend{Static: true, Subnet: "nodes", PrivateIP: netip.MustParseAddr("10.0.0.4")}}, "lb-2"},
		"in another subnet":    {service.Frontend{Frontend: lb.Frontend{Static: true, Subnet: "x", PrivateIP: netip.MustParseAddr("10.0.0.4")}}, ""},
		"any":                  {service.Frontend{PublicIP: &service.PublicIP{ID: id}}, ""},
		"unknown":              {service.Frontend{PublicIP: &service.PublicIP{ID: id, Address: netip.MustParseAddr("198.18.0.9")}}, ""},
	} {
		b := listed(azure)
		if err := b.readAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := b.pinnedConfiguration(t.Context(), PlacementRequest{Desired: &service.Spec{Frontends: []service.Frontend{{PublicIP: &service.PublicIP{}}, tt.of}}}, false); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v", about, got, err)
		}
	}
	azure.fails = "public IPs"
	b := listed(azure)
	if _, err := b.pinnedConfiguration(t.Context(), PlacementRequest{Desired: &service.Spec{Frontends: []service.Frontend{{PublicIP: &service.PublicIP{Address: ip}}}}}, false); !errors.Is(err, errNotNow) {
		t.Error(err)
	}
}

// Rules of other Services count on their load balancer, as do rules without a known Service.
func TestLoadBalancerUsage(t *testing.T) {
	b := listed(&lists{})
	b.cache.setPlacement("shop/a", placement{at: []string{"kubernetes"}, owner: "aa", rules: 3})
	b.cache.setPlacement("shop/b", placement{at: []string{"lb-2", "kubernetes"}, owner: "bb", rules: 5})
	b.cache.setPlacement("shop/gone", placement{owner: "gg", rules: 7})
	b.cache.recordState(lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1", Rules: []lb.Rule{{Name: "aa-TCP-80"}, {Name: "other"}, {Name: "cc-TCP-80"}, {Name: "gg-TCP-1"}}})
	got := b.countOccupancy(PlacementRequest{Service: "shop/c", Owner: "cc", Desired: &service.Spec{}})
	if k, l := got["kubernetes"], got["lb-2"]; k != (service.LoadBalancerUsage{Exists: true, Rules: 4}) || l != (service.LoadBalancerUsage{Rules: 5}) {
		t.Errorf("%+v", got)
	}
	if own := b.countOccupancy(PlacementRequest{Service: "shop/a", Owner: "aa", Desired: &service.Spec{}})["kubernetes"]; own.Rules != 2 {
		t.Errorf("without its own: %+v", own)
	}
	if private := b.countOccupancy(PlacementRequest{Service: "shop/c", Owner: "cc", Desired: &service.Spec{Internal: true}})["kubernetes"]; private != (service.LoadBalancerUsage{}) {
		t.Errorf("private: %+v", private)
	}
	b.cache.recordState(lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "Kubernetes"}})
	if usages := b.ListUsages(); len(usages) != 0 {
		t.Errorf("of one that is gone: %v", usages)
	}
}

func TestLossesOfAService(t *testing.T) {
	single, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	shown := []netip.Addr{two, single}
	job := func(edit func(*Request)) *job {
		req := Request{
			Service: "shop/web", Owner: "aa", On: lb.LoadBalancerID{Name: "kubernetes"}, StatusAddresses: shown, LoadBalancers: []string{"kubernetes"},
			Desired: &service.Spec{Internal: true, Frontends: []service.Frontend{{Frontend: lb.Frontend{Name: "aa", Subnet: "nodes"}}}},
		}
		edit(&req)
		return newJob(req, false)
	}
	for about, tt := range map[string]struct {
		edit      func(*Request)
		frontends []lb.Frontend
		want      []netip.Addr
	}{
		"nothing that is there":         {func(*Request) {}, nil, nil},
		"nothing that it keeps":         {func(*Request) {}, []lb.Frontend{{Name: "AA", Subnet: "Nodes", PrivateIP: single}}, nil},
		"one in another subnet":         {func(*Request) {}, []lb.Frontend{{Name: "aa", Subnet: "x", PrivateIP: single}}, []netip.Addr{single}},
		"each once, in order":           {func(*Request) {}, []lb.Frontend{{Name: "aa-2", Subnet: "x", PrivateIP: two}, {Name: "aa-1", Subnet: "x", PrivateIP: single}, {Name: "aa-3", Subnet: "x", PrivateIP: single}}, []netip.Addr{single, two}},
		"none of others":                {func(*Request) {}, []lb.Frontend{{Name: "bb", Subnet: "x", PrivateIP: single}}, nil},
		"all that it shows, not known":  {func(*Request) {}, []lb.Frontend{{Name: "aa-2"}}, []netip.Addr{single, two}},
		"all, for one is not a cluster": {func(r *Request) { r.LoadBalancers = []string{"kubernetes", "old"} }, nil, shown},
		"not what it asks for by address": {func(r *Request) {
			r.Desired.Frontends[0].Frontend.Static, r.Desired.Frontends[0].Frontend.PrivateIP = true, single
		}, []lb.Frontend{{Name: "aa-x", Subnet: "nodes", PrivateIP: single}, {Name: "aa-y", Subnet: "nodes", PrivateIP: two}}, []netip.Addr{two}},
	} {
		t.Run(about, func(t *testing.T) {
			b := listed(&lists{})
			j := job(tt.edit)
			ips := b.publicIPManager.BeginRound(t.Context(), j.On, []*publicip.Request{j.ipRequest})
			got := j.lostAddresses(ips, tt.frontends, []string{"kubernetes"})
			if len(got) != len(tt.want) {
				t.Fatalf("%v, want %v", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("%v, want %v", got, tt.want)
				}
			}
		})
	}
}
