// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// shows is an Azure with one load balancer and an up-to-date security group.
type shows struct {
	lists
	balancer lb.LoadBalancer
	reads    int
	err      error
	closed   bool // throttle gate closed
	deleted  []string
}

func (s *shows) DeletePublicIP(_ context.Context, ip lb.PublicIP) error {
	s.deleted = append(s.deleted, ip.ID.Name)
	return nil
}

func (s *shows) Enter(lb.LoadBalancerID) (time.Time, string) {
	if s.closed {
		return time.Now().Add(time.Minute), "Azure asked for patience"
	}
	return time.Time{}, ""
}

func (s *shows) GetLoadBalancer(context.Context, lb.LoadBalancerID) (lb.LoadBalancer, error) {
	s.reads++
	return s.balancer, s.err
}

func (s *shows) GetSecurityGroup(context.Context, lb.ResourceID) (lb.SecurityGroup, error) {
	return lb.SecurityGroup{Etag: "1", Subnets: 1}, nil
}

// pools is a Cluster that reports foreign pool members.
type pools struct {
	reaching
	owners []string
	others []string
	err    error
	asked  []string
}

func (*pools) AllowedPublicIPs(string) string { return "" }

func (p *pools) ServiceOwners() []string { return p.owners }

func (p *pools) NodeAddresses() []netip.Addr { return nil }

func (p *pools) NodesOf(lb.LoadBalancerID, bool) ([]netip.Addr, bool) { return nil, true }

func (p *pools) NeedsMembers(string, lb.LoadBalancerID, service.Pool, lb.Pool) bool { return false }
func (p *pools) ConversionState(lb.PoolID) (converting, paused bool)                { return false, false }
func (p *pools) MemberKind(lb.PoolID) service.MemberKind                            { return service.UnknownMembers }

func (p *pools) HasManagedPool(lb.PoolID) bool { return false }

func (p *pools) HasBackendPool(lb.PoolID) bool { return false }

func (p *pools) ForeignMembers(_ context.Context, pool lb.Pool) ([]string, error) {
	p.asked = append(p.asked, pool.ID.LoadBalancer.Name+"/"+pool.ID.Name)
	return p.others, p.err
}

// rounds returns a load balancer and the security group, ready for a round.
func rounds(azure Azure, cluster Cluster, takeEvents func(Result)) (*loadBalancer, *securityGroup) {
	b := New(Config{Azure: azure, Cluster: cluster, OnResult: takeEvents, Settings: Settings{
		Settings:       service.Settings{ClusterName: "kubernetes", PublicIPs: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "ips"}},
		Place:          lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg"},
		Configurations: []service.Configuration{{Name: "kubernetes"}}, MaxRules: 100,
		SecurityGroup: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypeSecurityGroup, Name: "nsg"},
	}, Log: slog.New(slog.DiscardHandler)})
	return &loadBalancer{LoadBalancers: b, id: b.ID("kubernetes")}, b.queues[""].of.(*securityGroup)
}

// Foreign members are read only for non-empty pools that a plan could remove: shared ones and a Service's own.
func TestPoolsCheckedForForeignMembers(t *testing.T) {
	full := []lb.Address{{IP: netip.MustParseAddr("10.0.0.4")}}
	pool := func(name string, addresses []lb.Address) lb.Pool {
		return lb.Pool{ID: lb.PoolID{Name: name}, Addresses: addresses}
	}
	foreign := []string{"192.0.2.9"}
	for about, tt := range map[string]struct {
		pool lb.Pool
		asks bool
	}{
		"a shared one":                     {pool("Kubernetes", full), true},
		"a shared one without addresses":   {pool("kubernetes", nil), false},
		"a Service's own":                  {pool("Shop-Web", full), true},
		"a Service's own without any":      {pool("shop-web", nil), false},
		"a shared one of interfaces":       {lb.Pool{ID: lb.PoolID{Name: "kubernetes"}, NIC: true, Addresses: full}, false},
		"another owner's":                  {pool("bastion", full), false},
		"another owner's, without any too": {pool("bastion", nil), false},
	} {
		cluster := &pools{others: foreign}
		l, _ := rounds(&shows{}, cluster, nil)
		j := newJob(Request{DedicatedPools: []string{"shop-web"}}, false)
		found, err := l.foreignAddresses(t.Context(), lb.LoadBalancer{Pools: []lb.Pool{tt.pool}}, []*job{j})
		want := map[string][]string{}
		if tt.asks {
			want[strings.ToLower(tt.pool.ID.Name)] = foreign
		}
		if err != nil || !reflect.DeepEqual(found, want) || (len(cluster.asked) > 0) != tt.asks {
			t.Errorf("%s: asked of %v, found %v, %v", about, cluster.asked, found, err)
		}
		if tt.asks && cluster.asked[0] != "kubernetes/"+tt.pool.ID.Name {
			t.Errorf("%s: asked of %v", about, cluster.asked)
		}
	}
	l, _ := rounds(&shows{}, &pools{err: errNotNow}, nil)
	if _, err := l.foreignAddresses(t.Context(), lb.LoadBalancer{Pools: []lb.Pool{pool("kubernetes", full)}}, nil); !errors.Is(err, errNotNow) {
		t.Errorf("an answer that is not there: %v", err)
	}
	l, _ = rounds(&shows{}, &pools{}, nil)
	if found, err := l.foreignAddresses(t.Context(), lb.LoadBalancer{Pools: []lb.Pool{pool("kubernetes", full)}}, nil); err != nil || len(found) > 0 {
		t.Errorf("nobody has put anything there: %v, %v", found, err)
	}
}

// A rejection of the first try does not outlive the second.
func TestRetryForgetsEarlierRejections(t *testing.T) {
	l, _ := rounds(&shows{err: errNotNow}, &pools{}, nil)
	j := newJob(Request{Owner: "aa"}, false)
	j.rejection = errors.New("would have 2 rules, and may have 1")
	err := l.tryWrite(t.Context(), []*job{j}, l.publicIPManager.BeginRound(t.Context(), l.id, nil), func() bool { return true })
	if !errors.Is(err, errNotNow) || j.rejection != nil {
		t.Errorf("the try ends with %v, the job with %v", err, j.rejection)
	}
}

// A plan contains each Service once: due, or one of the others.
func TestDueServicesAreDisjoint(t *testing.T) {
	l, _ := rounds(&shows{}, &pools{}, nil)
	due := newJob(Request{Owner: "aa", RemoveFrom: []lb.LoadBalancerID{l.id}}, false)
	in := l.planInput([]*job{due}, snapshot{owners: []string{"aa", "bb"}, publicIPs: l.publicIPManager.BeginRound(t.Context(), l.id, nil)})
	if len(in.Services) != 1 || in.Services[0].Owner != "aa" || !slices.Equal(in.Others, []string{"bb"}) {
		t.Errorf("due %+v, others %v", in.Services, in.Others)
	}
}

// A Service with protected addresses waits while a loss cannot be excluded; one known to retain them needs no
// read.
func TestServicesThatMayLoseAddressAreRead(t *testing.T) {
	before := netip.MustParseAddr("10.0.0.4")
	front := func(f lb.Frontend) *service.Spec {
		return &service.Spec{Internal: true, Frontends: []service.Frontend{{Frontend: f}}}
	}
	dynamic := front(lb.Frontend{Name: "aa", Subnet: "nodes"})
	lost := []lb.Frontend{{Name: "aa", Subnet: "apps", PrivateIP: before}}
	for about, tt := range map[string]struct {
		req   Request
		azure shows
		reads int
		want  string
	}{
		"it would lose one":             {Request{ProtectAddresses: true, Desired: dynamic}, shows{balancer: lb.LoadBalancer{Frontends: lost}}, 1, "it would lose 10.0.0.4"},
		"it would lose none":            {Request{ProtectAddresses: true, Desired: dynamic}, shows{balancer: lb.LoadBalancer{Frontends: []lb.Frontend{{Name: "aa", Subnet: "nodes", PrivateIP: before}}}}, 1, ""},
		"there is no load balancer":     {Request{ProtectAddresses: true, Desired: dynamic}, shows{err: &armerror.Fault{Class: armerror.Stale, Err: errNotNow}}, 1, ""},
		"Azure does not say":            {Request{ProtectAddresses: true, Desired: dynamic}, shows{err: errNotNow}, 1, "not now"},
		"Azure asks for patience":       {Request{ProtectAddresses: true, Desired: dynamic}, shows{closed: true}, 0, "patience"},
		"it has asked for this address": {Request{ProtectAddresses: true, Desired: front(lb.Frontend{Name: "aa", Subnet: "nodes", Static: true, PrivateIP: before})}, shows{err: errNotNow}, 0, ""},
		"a person has given it up":      {Request{Desired: dynamic}, shows{balancer: lb.LoadBalancer{Frontends: lost}}, 0, ""},
		"it wants nothing any more":     {Request{ProtectAddresses: true, RemoveFrom: []lb.LoadBalancerID{{Name: "kubernetes"}}}, shows{balancer: lb.LoadBalancer{Frontends: lost}}, 0, ""},
	} {
		t.Run(about, func(t *testing.T) {
			azure := tt.azure
			l, _ := rounds(&azure, &pools{}, nil)
			tt.req.Owner, tt.req.StatusAddresses, tt.req.On = "aa", []netip.Addr{before}, l.id
			j := newJob(tt.req, false)
			l.rejectAddressLoss(t.Context(), []*job{j}, l.publicIPManager.BeginRound(t.Context(), l.id, ipRequests([]*job{j})))
			if azure.reads != tt.reads {
				t.Errorf("%d reads, want %d", azure.reads, tt.reads)
			}
			if err := j.ipRequest.Err; (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// One read covers all Services that would lose addresses.
func TestOneReadServesAllAddressLosses(t *testing.T) {
	azure := &shows{}
	l, _ := rounds(azure, &pools{}, nil)
	var jobs []*job
	for _, owner := range []string{"aa", "bb"} {
		jobs = append(jobs, newJob(Request{Owner: owner, ProtectAddresses: true, On: l.id, StatusAddresses: []netip.Addr{netip.MustParseAddr("10.0.0.4")}, Desired: &service.Spec{}}, false))
	}
	l.rejectAddressLoss(t.Context(), jobs, l.publicIPManager.BeginRound(t.Context(), l.id, ipRequests(jobs)))
	if azure.reads != 1 {
		t.Errorf("%d reads", azure.reads)
	}
}

// A Service loses the address of a public IP made for it when that is deleted, and of a user-provided one when
// its frontend is removed.
func TestLostPublicAddresses(t *testing.T) {
	ip := func(name, address string, tags map[string]string) lb.PublicIP {
		return lb.PublicIP{ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "ips", Type: lb.TypePublicIP, Name: name}, Address: netip.MustParseAddr(address), Tags: tags, Family: lb.IPv4, SKU: lb.Standard, Etag: "1"}
	}
	made := ip("kubernetes-aa", "198.18.0.1", map[string]string{service.TagCluster: "kubernetes", service.TagService: "shop/web"})
	own := ip("mine", "198.18.0.2", nil)
	wants := func(id lb.ResourceID, named bool) *service.Spec {
		return &service.Spec{Frontends: []service.Frontend{{Frontend: lb.Frontend{Name: "aa"}, PublicIP: &service.PublicIP{ID: id, ManagedPrefix: made.ID.Name, UserNamed: named, Family: lb.IPv4, Tags: made.Tags}}}}
	}
	other := netip.MustParseAddr("203.0.113.5")
	front := func(of lb.PublicIP) []lb.Frontend { return []lb.Frontend{{Name: "aa", PublicIP: of.ID.String()}} }
	for about, tt := range map[string]struct {
		desired *service.Spec
		has     []lb.Frontend
		shown   lb.PublicIP
		want    []netip.Addr
	}{
		"it keeps its own":                 {wants(made.ID, false), front(made), made, nil},
		"it takes another":                 {wants(own.ID, true), front(made), made, []netip.Addr{made.Address}},
		"its own is on no frontend":        {wants(own.ID, true), nil, made, []netip.Addr{made.Address}},
		"nor does it show that":            {wants(own.ID, true), nil, own, nil},
		"it leaves one that people made":   {wants(made.ID, false), front(own), own, []netip.Addr{own.Address}},
		"that is in no group that is read": {wants(made.ID, false), []lb.Frontend{{Name: "aa", PublicIP: strings.Replace(own.ID.String(), "/ips/", "/far/", 1)}}, own, []netip.Addr{own.Address, other}},
	} {
		l, _ := rounds(&shows{lists: lists{ips: []lb.PublicIP{made, own}}}, &pools{}, nil)
		j := newJob(Request{Service: "shop/web", Owner: "aa", On: l.id, Desired: tt.desired, StatusAddresses: []netip.Addr{tt.shown.Address, other}}, false)
		ips := l.publicIPManager.BeginRound(t.Context(), l.id, []*publicip.Request{j.ipRequest})
		if got := j.lostAddresses(ips, tt.has, l.cfg.loadBalancerNames()); j.ipRequest.Err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v (%v)", about, got, tt.want, j.ipRequest.Err)
		}
	}
}

// An accepted Service has no pause, and its former addresses are forgotten.
func TestAnAcceptedServiceHasNoPause(t *testing.T) {
	var reported []Result
	_, g := rounds(&shows{}, &pools{}, func(r Result) { reported = append(reported, r) })
	jobs := []*job{newJob(Request{Service: "shop/b", Owner: "bb"}, true), newJob(Request{Service: "shop/a", Owner: "aa"}, true)}
	for _, j := range jobs {
		g.rejections.RecordRejection(j.rejectionKey(), specHash(j.Desired, ""), errNotNow, time.Now())
		g.formerAddresses.AddAddresses(j.Owner, []netip.Addr{netip.MustParseAddr("198.18.0.1")})
	}
	g.runRound(t.Context(), jobs)
	if len(reported) != 2 || reported[0].Service != "shop/a" || reported[0].Err != nil || reported[1].Err != nil {
		t.Fatalf("told %+v", reported)
	}
	for _, j := range jobs {
		if g.rejections.IsRejected(j.rejectionKey()) || len(g.formerAddresses.AddressesOf(j.Owner)) > 0 {
			t.Errorf("%s: rejected %t, former addresses %v", j.Service, g.rejections.IsRejected(j.rejectionKey()), g.formerAddresses.AddressesOf(j.Owner))
		}
	}
}

// A recently rejected Service is not retried and reports the same error; nothing is reported at shutdown.
func TestARejectedServiceWaits(t *testing.T) {
	var reported []Result
	_, g := rounds(&shows{}, &pools{}, func(r Result) { reported = append(reported, r) })
	q := g.queues[""]
	for _, ctx := range []func() context.Context{t.Context, func() context.Context {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		return ended
	}} {
		j := newJob(Request{Service: "shop/a", Owner: "aa", Desired: &service.Spec{}}, true)
		g.rejections.RecordRejection(j.rejectionKey(), specHash(j.Desired, ""), errNotNow, time.Now())
		q.addJobs(j)
		if jobs, _ := q.takeBatch(ctx(), time.Now()); len(jobs) > 0 || len(q.waiting) > 0 {
			t.Errorf("%d jobs are taken, %d wait", len(jobs), len(q.waiting))
		}
		if len(reported) != 1 || !errors.Is(reported[0].Err, errNotNow) || !armerror.FromError(reported[0].Err).IsDeferred() {
			t.Errorf("told %+v", reported)
		}
	}
}

// A Service's differences are its frontends, rules, probes, shared probe and wanted pools, and no parts of
// other Services.
func TestDifferencesOfAService(t *testing.T) {
	j := newJob(Request{Owner: "aa", Desired: &service.Spec{Probes: []lb.Probe{{Name: "shared"}}}}, false)
	j.Pools = []service.Pool{{Name: "Kubernetes"}}
	for about, tt := range map[string]struct {
		change lb.Change
		own    bool
	}{
		"its rule":              {lb.Change{Kind: lb.KindRule, Name: "AA-TCP-80"}, true},
		"its frontend":          {lb.Change{Kind: lb.KindFrontend, Name: "aa"}, true},
		"the shared probe":      {lb.Change{Kind: lb.KindProbe, Name: "Shared"}, true},
		"a pool that it wants":  {lb.Change{Kind: lb.KindPool, Name: "kubernetes"}, true},
		"another's rule":        {lb.Change{Kind: lb.KindRule, Name: "bb-TCP-80"}, false},
		"another's probe":       {lb.Change{Kind: lb.KindProbe, Name: "bb-TCP-80"}, false},
		"a rule named shared":   {lb.Change{Kind: lb.KindRule, Name: "shared"}, false},
		"a pool named as it is": {lb.Change{Kind: lb.KindPool, Name: "aa"}, false},
	} {
		tt.change.Action = lb.ActionRemove
		if got := jobChanges(j, []lb.Change{tt.change}); (len(got) > 0) != tt.own {
			t.Errorf("%s: %v", about, got)
		}
	}
}

// The observed state after a try is used for placement, and public IPs of removed frontends are cleaned up even
// without a Service in the round.
func TestRecordedOutcome(t *testing.T) {
	ip := lb.PublicIP{
		ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "far", Type: lb.TypePublicIP, Name: "kubernetes-acc"}, Etag: "1",
		Tags: map[string]string{service.TagCluster: "kubernetes", service.TagService: ""},
	}
	azure := &shows{lists: lists{ips: []lb.PublicIP{ip}}}
	l, _ := rounds(azure, &pools{}, nil)
	ips := l.publicIPManager.BeginRound(t.Context(), l.id, nil)
	front := lb.Frontend{Name: "acc", PublicIP: ip.ID.String()}
	l.recordOutcome(t.Context(), tryResult{
		Plan:     plan.Plan{Changes: []lb.Change{{Action: lb.ActionRemove, Kind: lb.KindFrontend, Name: "acc", Was: front}}},
		observed: lb.LoadBalancer{ID: l.id, Etag: "2", Frontends: []lb.Frontend{{Name: "dd"}}}, publicIPs: ips,
	})
	if got := l.cache.loadBalancersOf("dd"); !slices.Equal(got, []string{"kubernetes"}) {
		t.Errorf("dd is on %v", got)
	}
	ips.FinishServices(t.Context(), nil)
	if !slices.Equal(azure.groups, []string{"far", "far"}) || !slices.Equal(azure.deleted, []string{"kubernetes-acc"}) {
		t.Errorf("looked in %v, deleted %v", azure.groups, azure.deleted)
	}
}
