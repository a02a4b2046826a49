// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
)

// A dry run predicts the result exactly, whatever the request and the known behavior of Azure, and writes
// nothing.
func TestLawDryRunMatchesTheRound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before := drawEdits(rt)
		next := before[len(before)-1]
		if before = before[:len(before)-1]; next.name == "" {
			next.name, next.spec = lawNames[0], drawSpec(rt, lawNames[0], []string{"IPv4", "IPv4 IPv6", "IPv6 IPv4"})
		}
		knows := rapid.SampledFrom([]behavior.Behavior{{}, {UpdateNewPools: behavior.Populated}}).Draw(rt, "knows")
		if err := rehearsed(t, knows, before, next); err != nil {
			rt.Fatal(err)
		}
	})
}

func rehearsed(t *testing.T, knows behavior.Behavior, before []edit, next edit) (err error) {
	synctest.Test(t, func(*testing.T) {
		s := newStage(func(set *loadbalancer.Settings) {
			set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
		})
		defer s.close()
		must(s.emu.SetBehavior(knows))
		s.stop()
		s.knows = knows
		s.launch()
		s.put("publicIPAddresses/mine", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
		s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
		for _, e := range before {
			s.edit(e)
			s.settle(2 * time.Hour)
		}
		s.restart() // the dry run knows no more than a new process
		s.settle(2 * time.Hour)
		s.stop()
		s.launch()

		s.change(next)
		calls := len(s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)))
		r, results := s.rehearse()
		if n := len(s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))); n != calls {
			err = fmt.Errorf("the rehearsal wrote %d times", n-calls)
			return
		}
		s.kickAll()
		s.settle(2 * time.Hour)
		if len(results) == 0 {
			return
		}
		planned, got := s.showing(r.Shadow), s.showing(dryrun.NewShadow(s.process.client))
		if d := gocmp.Diff(got, planned, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); d != "" {
			err = fmt.Errorf("%s was planned otherwise than it came (-came +planned)\n%s", next.name, d)
		}
	})
	return err
}

// A dry run Service keeps its published frontend, but its own dry run reports the connections that would be
// lost.
func TestDryRunListsDisconnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(linked)
		defer s.close()
		asks := func(create string) {
			s.applyAll(`shop/a: {ports: 80, azure-load-balancer-internal: "true", azure-pls-create: "` + create + `", azure-pls-visibility: "*"}`)
		}
		asks("true")
		s.settle(2 * time.Hour)
		_, err := s.emu.Connect(network+"/privateLinkServices/pls-a001", "/subscriptions/c/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe")
		must(err)
		s.process.dead = true // not executed
		asks("false")
		s.process.dead = false
		s.services["shop/a"].held = true
		calls := len(s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)))
		r, results := s.rehearse()
		var reasons []string
		for _, e := range results[0].Link.Events {
			reasons = append(reasons, e.Reason)
		}
		if want := []string{privatelink.ReasonDisconnected, privatelink.ReasonDeleted}; results[0].Link.Err != nil || !slices.Equal(reasons, want) {
			t.Errorf("it says %v, %v, %v", reasons, results[0].Link.Err, results[0].Err)
		}
		if links := r.ListChanges().Links; len(links) != 1 || len(links[0].Before.Connections) != 1 || links[0].After.Etag != "" {
			t.Errorf("the plan shows %d, and not the end of the one with its connection", len(links))
		}
		if n := len(s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))); n != calls {
			t.Errorf("the rehearsal wrote %d times", n-calls)
		}
	})
}

// edit applies an edit and reconciles.
func (s *stage) edit(e edit) {
	switch {
	case e.name == "":
		s.restart()
	case e.spec == nil:
		s.remove(e.name)
	default:
		s.apply(e.name, specOf(e.spec), nil)
	}
}

// change is edit without notifying the process.
func (s *stage) change(e edit) {
	s.process.dead = true // apply and remove then notify no process
	s.edit(e)
	s.process.dead = false
}

// rehearse runs the requests of all Services in order.
func (s *stage) rehearse() (*dryrun.Simulator, []loadbalancer.Result) {
	cfg := loadbalancer.Config{Settings: s.settings, Cluster: s.process, Log: s.log, PrivateIPs: s.reservations}
	if s.links() {
		cfg.PrivateLinks = azure.NewPrivateLinkClient(s.process.client)
	}
	rehearsal := dryrun.New(cfg, s.process.client)
	var reqs []loadbalancer.Request
	for _, name := range s.names() {
		r := s.services[name]
		var desired *service.Spec
		if !r.deleted {
			w, problems := service.BuildSpec(r.Service, s.settings.Settings)
			if len(problems) > 0 {
				continue
			}
			desired = &w
		}
		on, leave, err := rehearsal.FindPlacement(s.process.ctx, loadbalancer.PlacementRequest{Service: name, Owner: r.OwnerName(), Desired: desired, LoadBalancers: r.places})
		if err != nil {
			panic(err)
		}
		if on == "" && len(leave) == 0 {
			continue
		}
		req := loadbalancer.Request{Service: name, Owner: r.OwnerName(), DedicatedPools: r.DedicatedPools(), Desired: desired, StatusAddresses: r.status, Groups: slices.Concat(r.groups, groupsOf(desired)), LinkGroups: slices.Clone(r.links)}
		if on != "" {
			req.On = rehearsal.ID(on)
		}
		for _, l := range leave {
			req.RemoveFrom = append(req.RemoveFrom, rehearsal.ID(l))
		}
		reqs = append(reqs, req)
	}
	results, err := rehearsal.RunRequests(s.process.ctx, reqs)
	if err != nil {
		panic(err)
	}
	return rehearsal, results
}

// shown is the compared part of a cloud.
type shown struct {
	Balancers []lb.LoadBalancer
	PublicIPs []lb.PublicIP
	Rules     []lb.SecurityRule
}

// showing reads the whole state, without dynamic addresses; in security rules they are replaced by their public
// IPs.
func (s *stage) showing(a *dryrun.Shadow) shown {
	var all shown
	names := map[string]string{}
	for _, group := range []string{resources, "net"} {
		ips, _ := a.ListPublicIPs(s.process.ctx, subscription, group)
		for _, ip := range ips {
			names[ip.Address.String()] = ip.ID.Name
			ip.Etag, ip.Origin, ip.UsedBy, ip.Address, ip.Provisioning = "", nil, "", netip.Addr{}, ""
			all.PublicIPs = append(all.PublicIPs, ip)
		}
	}
	balancers, _ := a.ListLoadBalancers(s.process.ctx, subscription, resources)
	for _, b := range balancers {
		b.Etag, b.Origin, b.Provisioning = "", nil, ""
		b.Frontends, b.Pools, b.Rules = slices.Clone(b.Frontends), slices.Clone(b.Pools), slices.Clone(b.Rules)
		for i, f := range b.Frontends {
			if !f.Static {
				b.Frontends[i].PrivateIP = netip.Addr{}
			}
			b.Frontends[i].Family = ""
		}
		for i := range b.Pools {
			b.Pools[i] = lb.Pool{ID: b.Pools[i].ID, Addresses: slices.Clone(b.Pools[i].Addresses)}
			for j := range b.Pools[i].Addresses {
				b.Pools[i].Addresses[j].AdminState, b.Pools[i].Addresses[j].VirtualNetwork = "", ""
			}
			if len(b.Pools[i].Addresses) == 0 {
				b.Pools[i].Addresses = nil
			}
		}
		for i, r := range b.Rules {
			if r.TCPReset != nil && !*r.TCPReset {
				b.Rules[i].TCPReset = nil
			}
		}
		all.Balancers = append(all.Balancers, b)
	}
	if g, err := a.GetSecurityGroup(s.process.ctx, s.settings.SecurityGroup); err == nil {
		for _, r := range g.Rules {
			r.Destinations = slices.Clone(r.Destinations)
			for i, d := range r.Destinations {
				r.Destinations[i] = cmp.Or(names[d], d)
			}
			slices.Sort(r.Destinations)
			all.Rules = append(all.Rules, r)
		}
	}
	return all
}

// A dry run of one Service includes the pool's members and rejections, and writes nothing.
func TestADryRunOfOneService(t *testing.T) {
	member := lb.Address{Name: "n1", IP: netip.MustParseAddr("10.0.9.1")}
	for _, row := range []struct {
		name    string
		edit    func(*service.Service)
		refused string
		pools   int // written pools
	}{
		{"served", func(*service.Service) {}, "", 1},
		{"refused", func(spec *service.Service) { annotate(spec, service.PIPName, "mine") }, "mine", 0},
		{"on a Basic load balancer", func(*service.Service) {}, "is of SKU Basic: Weir writes Standard ones only; weir migrate plan", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage()
			defer s.close()
			if strings.HasPrefix(row.name, "on a Basic") {
				if err := s.emu.Put(s.process.balancers.ID(clusterName).String(), []byte(`{"location":"eastus","sku":{"name":"Basic"}}`)); err != nil {
					t.Fatal(err)
				}
			}
			spec := simple()
			spec.Namespace, spec.Name, spec.UID = "shop", "web", fmt.Sprintf("%032d", 1)
			row.edit(&spec)
			desired, problems := service.BuildSpec(spec, s.settings.Settings)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			r := dryrun.New(loadbalancer.Config{Settings: s.settings, Cluster: s.process, Log: s.log}, s.process.client)
			req := loadbalancer.Request{Service: spec.Key(), Owner: spec.OwnerName(), Desired: &desired, On: r.ID(clusterName)}
			refused, err := r.DryRun(t.Context(), req, func(service.Pool) (diff.Desired, error) {
				return diff.Desired{Addresses: []lb.Address{member}, IsOwnAddress: func(netip.Addr) bool { return true }, IsExclusive: true}, nil
			}, true)
			if err != nil || (refused != nil) != (row.refused != "") || refused != nil && !strings.Contains(refused.Error(), row.refused) {
				t.Fatalf("%s: refused: %v, %v", row.name, refused, err)
			}
			d := r.Shadow.ListChanges()
			if d.PoolWrites != row.pools || row.pools > 0 && !slices.Equal(d.LoadBalancers[0].After.Pools[0].Addresses, []lb.Address{member}) {
				t.Errorf("%s: %d pools are written: %+v", row.name, d.PoolWrites, d.LoadBalancers)
			}
			if n := s.emu.Stats().Writes; n > 0 {
				t.Errorf("%s: %d writes", row.name, n)
			}
		})
	}
}
