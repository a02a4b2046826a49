// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// cloud is an in-memory Azure.
type cloud struct {
	mu   sync.Mutex
	ips  map[string]lb.PublicIP
	said []string
}

func (c *cloud) ListPublicIPs(_ context.Context, _, group string) ([]lb.PublicIP, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ips []lb.PublicIP
	for _, key := range slices.Sorted(maps.Keys(c.ips)) {
		if c.ips[key].ID.ResourceGroup == group {
			ips = append(ips, c.ips[key])
		}
	}
	return ips, nil
}

func (c *cloud) PutPublicIP(_ context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ip.Etag == "" {
		ip.Etag, ip.Address, ip.Provisioning = "1", netip.MustParseAddr("20.0.0.9"), lb.Succeeded
	}
	c.ips[ip.ID.Key()] = ip
	c.said = append(c.said, "put "+ip.ID.Name+" for "+ip.Tags[service.TagService]+" as "+ip.DNSLabel)
	return ip, nil
}

func (c *cloud) DeletePublicIP(_ context.Context, ip lb.PublicIP) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ips, ip.ID.Key())
	c.said = append(c.said, "delete "+ip.ID.Name)
	return nil
}

var (
	kubernetes = lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}
	resources  = lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePublicIP}
)

func named(name string) lb.ResourceID {
	id := resources
	id.Name = name
	return id
}

// exists returns a public IP with an address, as made for a Service.
func exists(name, of, address string) lb.PublicIP {
	return lb.PublicIP{
		ID: named(name), Etag: "1", SKU: lb.Standard, Static: true, Family: lb.IPv4, Provisioning: lb.Succeeded,
		Address: netip.MustParseAddr(address), Tags: map[string]string{service.TagService: of, service.TagCluster: "c"},
	}
}

func keeperOf(ips ...lb.PublicIP) (*Manager, *cloud) {
	azure := &cloud{ips: map[string]lb.PublicIP{}}
	for _, ip := range ips {
		azure.ips[ip.ID.Key()] = ip
	}
	return New(Config{
		Azure: azure, Conflicts: &conflict.Conflicts{}, InProgress: &conflict.InProgress{}, Log: slog.New(slog.DiscardHandler),
		ClusterName: "c", Group: resources, Location: "eastus", LoadBalancers: []lb.LoadBalancerID{kubernetes},
	}), azure
}

// requestOf returns a request of shop/web, owner a1.
func requestOf(wants ...service.PublicIP) *Request {
	req := &Request{Service: "shop/web", Owner: "a1", Desired: &service.Spec{Owner: "a1"}}
	for i := range wants {
		req.Desired.Frontends = append(req.Desired.Frontends, service.Frontend{PublicIP: &wants[i]})
	}
	return req
}

func own(label string) service.PublicIP {
	tags := map[string]string{service.TagService: "shop/web", service.TagCluster: "c"}
	if label != "" {
		tags[service.TagDNSLabel] = "shop/web"
	}
	return service.PublicIP{ID: named("c-a1"), ManagedPrefix: "c-a1", Family: lb.IPv4, DNSLabel: label, SetsDNSLabel: label != "", Tags: tags}
}

func brought(name, label string) service.PublicIP {
	return service.PublicIP{ID: named(name), UserNamed: true, Family: lb.IPv4, DNSLabel: label, SetsDNSLabel: label != ""}
}

// A made public IP exists before the load balancer is written; a user-provided one gets its label after it;
// unneeded ones are deleted last.
func TestTheOrderOfARound(t *testing.T) {
	keeper, azure := keeperOf(exists("theirs", "", "20.0.0.1"))
	keeper.cfg.GrantsOf = func(string) string { return "theirs" }
	ctx := t.Context()
	made := requestOf(own("web"))
	round := keeper.BeginRound(ctx, kubernetes, []*Request{made})
	if len(azure.said) > 0 {
		t.Fatalf("written before Write: %v", azure.said)
	}
	round.WriteRequired(ctx)
	if ip, public := round.PublicIPOf(made, 0); !public || !ip.Address.IsValid() || made.Err != nil || !made.Changed {
		t.Fatalf("made %v, %+v", ip, made)
	}

	moves := requestOf(brought("theirs", "web"))
	round = keeper.BeginRound(ctx, kubernetes, []*Request{moves})
	round.WriteRequired(ctx)
	round.RecordRemoved([]lb.Change{{Was: lb.Frontend{PublicIP: named("c-a1").String()}}})
	round.FinishServices(ctx, []*Request{moves})
	want := []string{"put c-a1 for shop/web as web", "put c-a1 for shop/web as ", "put theirs for  as web", "delete c-a1"}
	if moves.Err != nil || !slices.Equal(azure.said, want) {
		t.Errorf("%v: %q, want %q", moves.Err, azure.said, want)
	}
}

// An impossible request gets an error with a remedy, and nothing is written.
func TestUnusablePublicIPs(t *testing.T) {
	basic := exists("basic", "", "20.0.0.2")
	basic.SKU = "Basic"
	taken := exists("taken", "", "20.0.0.3")
	taken.UsedBy = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/networkInterfaces/vm/ipConfigurations/a"
	writing := exists("writing", "", "20.0.0.4")
	writing.Provisioning = lb.Updating
	other := exists("c-a1", "shop/other", "20.0.0.5")
	first := exists("c-a1", "shop/web", "20.0.0.6")
	first.SKU, first.UsedBy = "Basic", kubernetes.String()+"/frontendIPConfigurations/a1"
	for name, row := range map[string]struct {
		want     service.PublicIP
		wantText string
	}{
		"no such name":                 {brought("nobody", ""), "has no public IP nobody: create it"},
		"no such address":              {service.PublicIP{ID: named("x"), Address: netip.MustParseAddr("20.9.9.9"), Family: lb.IPv4}, "has no public IP with address 20.9.9.9"},
		"a Basic one":                  {brought("basic", ""), "upgrade it"},
		"one of a Basic load balancer": {own(""), "as its load balancer is: Weir writes Standard ones only; weir migrate plan shows how"},
		"a machine has it":             {brought("taken", ""), "free it"},
		"of IPv6":                      {service.PublicIP{ID: named("taken"), UserNamed: true, Family: lb.IPv6}, "one of IPv6 is needed"},
		"another Service":              {own(""), "tagged as one of Service shop/other"},
		"in progress":                  {brought("writing", ""), "another write to it is under way"},
	} {
		of := other
		if strings.Contains(name, "load balancer") {
			of = first
		}
		keeper, azure := keeperOf(basic, taken, writing, of)
		req := requestOf(row.want)
		round := keeper.BeginRound(t.Context(), kubernetes, []*Request{req})
		round.WriteRequired(t.Context())
		if req.Err == nil || !strings.Contains(req.Err.Error(), row.wantText) || len(azure.said) > 0 {
			t.Errorf("%s: %v, %q", name, req.Err, azure.said)
		}
	}
}

// A public IP still in use is marked as an orphan; the next round that finds it free deletes it. Those of other
// clusters are not changed.
func TestSharedPublicIPIsDeletedWithItsLastService(t *testing.T) {
	shared, foreign := exists("c-a1", "shop/web", "20.0.0.1"), exists("d-a1", "shop/web", "20.0.0.2")
	shared.UsedBy = kubernetes.String() + "/frontendIPConfigurations/a2"
	foreign.Tags[service.TagCluster] = "d"
	keeper, azure := keeperOf(shared, foreign)
	leaves := &Request{Service: "shop/web", Owner: "a1", IsLeaving: true}
	keeper.BeginRound(t.Context(), kubernetes, []*Request{leaves}).FinishServices(t.Context(), []*Request{leaves})
	free := azure.ips[shared.ID.Key()]
	free.UsedBy = ""
	azure.ips[shared.ID.Key()] = free
	another := &Request{Service: "shop/other", Owner: "a2"}
	keeper.BeginRound(t.Context(), kubernetes, []*Request{another}).FinishServices(t.Context(), []*Request{another})
	if want := []string{"put c-a1 for  as ", "delete c-a1"}; !slices.Equal(azure.said, want) || leaves.Err != nil || another.Err != nil {
		t.Errorf("%q, want %q; %v, %v", azure.said, want, leaves.Err, another.Err)
	}
}

// An unused public IP made for a Service is retained and reported until it may be deleted. One that others use
// stays.
func TestAPublicIPThatIsNotUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		usedBy string
		edit   func(*Request)
		unused string
		output []string
	}{
		"it stays":             {"", nil, "c-a1-IPv4", nil},
		"it is deleted":        {"", func(r *Request) { r.DeleteUnused = true }, "", []string{"delete c-a1-IPv4"}},
		"others use it":        {"x", func(r *Request) { r.DeleteUnused = true }, "", nil},
		"the Service moves":    {"", func(r *Request) { r.DeleteUnused, r.IsMoving = true, true }, "", nil},
		"it is wanted nowhere": {"", func(r *Request) { r.Desired = &service.Spec{Owner: "a1"} }, "", []string{"delete c-a1", "delete c-a1-IPv4"}},
	} {
		t.Run(name, func(t *testing.T) {
			second := exists("c-a1-IPv4", "shop/web", "20.0.0.2")
			if second.UsedBy = tt.usedBy; tt.usedBy != "" {
				second.UsedBy = kubernetes.String() + "/frontendIPConfigurations/a2"
			}
			first := exists("c-a1", "shop/web", "20.0.0.1")
			if name != "it is wanted nowhere" {
				first.UsedBy = kubernetes.String() + "/frontendIPConfigurations/a1"
			}
			keeper, azure := keeperOf(first, second)
			req := requestOf(own(""))
			if tt.edit != nil {
				tt.edit(req)
			}
			round := keeper.BeginRound(t.Context(), kubernetes, []*Request{req})
			round.FinishServices(t.Context(), []*Request{req})
			unused := ""
			for _, ip := range round.UnusedIPs(req) {
				unused += ip.ID.Name
			}
			slices.Sort(azure.said)
			if unused != tt.unused || !slices.Equal(azure.said, tt.output) || req.Err != nil {
				t.Errorf("not used is %q, written is %q; %v", unused, azure.said, req.Err)
			}
		})
	}
}

// Azure may return a name in another case.
func TestMadeForWhateverTheCapitals(t *testing.T) {
	for name, want := range map[string]string{
		"c-a1": "a1", "C-A1": "A1", "c-a1-IPv6": "a1", "c-a1-ipv6": "a1", "c-IPv6": "", "c-a1-IPv4": "a1", "c-a1-ipv4-2": "a1", "c-a1-IPv4-x": "", "d-a1": "",
	} {
		if got := ManagedOwner(exists(name, "shop/web", "20.0.0.1"), "c"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// While a Service moves, its old public IP stays, even if Azure does not show it in use.
func TestMovedServiceKeepsItsPublicIP(t *testing.T) {
	keeper, azure := keeperOf(exists("c-a1", "shop/web", "20.0.0.1"))
	req := &Request{Service: "shop/web", Owner: "a1", Desired: &service.Spec{}, IsMoving: true}
	round := keeper.BeginRound(t.Context(), kubernetes, []*Request{req})
	round.FinishServices(t.Context(), []*Request{req})
	if len(azure.said) > 0 || req.Err != nil {
		t.Errorf("%q, %v", azure.said, req.Err)
	}
	req.IsMoving, req.IsLeaving = false, true
	if round.FinishServices(t.Context(), []*Request{req}); !slices.Equal(azure.said, []string{"delete c-a1"}) || req.Err != nil {
		t.Errorf("%q, %v", azure.said, req.Err)
	}
}
