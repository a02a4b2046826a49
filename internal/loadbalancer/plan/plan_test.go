// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/lb"
)

// newTestParts returns a Service with one rule per port and its own public IP.
func newTestParts(owner string, ports ...int32) ServiceParts {
	s := ServiceParts{Owner: owner, Frontends: []lb.Frontend{{Name: owner, PublicIP: "/pip/" + owner}}, Pools: []lb.Pool{pool("kubernetes")}}
	for _, port := range ports {
		name := fmt.Sprintf("%s-TCP-%d", owner, port)
		s.Probes = append(s.Probes, lb.Probe{Name: name, Protocol: lb.ProbeTCP, Port: 30000 + port})
		s.Rules = append(s.Rules, lb.Rule{Name: name, Transport: lb.TCP, Frontend: owner, Pool: "kubernetes", Probe: name,
			FrontendPort: port, BackendPort: port, FloatingIP: true})
	}
	return s
}

func pool(name string) lb.Pool { return lb.Pool{ID: lb.PoolID{Name: name}} }

func gone(owner string, pools ...string) ServiceParts {
	return ServiceParts{Owner: owner, DedicatedPools: pools}
}

// foreign returns a load balancer with foreign parts.
func foreign() lb.LoadBalancer {
	return lb.LoadBalancer{
		ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1",
		Frontends: []lb.Frontend{{Name: "outbound", PublicIP: "/pip/out"}, {Name: "appliance", PublicIP: "/pip/appliance"}},
		Pools:     []lb.Pool{pool("outbound"), pool("vms")},
		Probes:    []lb.Probe{{Name: "tcp-22", Protocol: lb.ProbeTCP, Port: 22}},
		Rules:     []lb.Rule{{Name: "ssh", Transport: lb.TCP, Frontend: "appliance", Pool: "vms", Probe: "tcp-22", FrontendPort: 22, BackendPort: 22}},
		Pinned:    map[string]bool{"outbound": true},
	}
}

func spell(changes []lb.Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Action, c.Kind, c.Name))
	}
	return lines
}

func expect(t *testing.T, p Plan, want ...string) Plan {
	t.Helper()
	if diff := cmp.Diff(want, spell(p.Changes)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	return p
}

func TestAdditionsForwardRemovalsInReverse(t *testing.T) {
	p := expect(t, Make(Input{Observed: foreign(), Services: []ServiceParts{newTestParts("aa", 80)}}),
		"add pool kubernetes", "add probe aa-TCP-80", "add frontend aa", "add rule aa-TCP-80")
	p = expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{newTestParts("aa", 443)}}),
		"add probe aa-TCP-443", "add rule aa-TCP-443", "remove rule aa-TCP-80", "remove probe aa-TCP-80")
	expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{gone("aa")}}),
		"remove rule aa-TCP-443", "remove frontend aa", "remove probe aa-TCP-443")
}

func TestOnlyWhatDiffersIsChanged(t *testing.T) {
	p := Make(Input{Observed: foreign(), Services: []ServiceParts{newTestParts("aa", 80), newTestParts("ab", 80)}})
	s := newTestParts("aa", 80)
	s.Rules[0].IdleMinutes = 15
	p = expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{s, newTestParts("ab", 80)}}), "change rule aa-TCP-80")
	if before, rule := p.Changes[0].Was.(lb.Rule), p.Changes[0].Is.(lb.Rule); before.IdleMinutes != 0 || rule.IdleMinutes != 15 {
		t.Errorf("was %v, is %v", before, rule)
	}
}

// Azure changes the case of names, adds addresses and zones, and returns TCP reset where it has no use.
func TestDefaultsOfAzureAreNoDifference(t *testing.T) {
	s := newTestParts("aa", 80)
	s.Frontends = []lb.Frontend{{Name: "aa", Subnet: "/Subnet/x"}}
	s.Rules[0].TCPReset = new(false)
	p := Make(Input{Observed: foreign(), Services: []ServiceParts{s}})
	next := p.Next
	f := &next.Frontends[2]
	f.Name, f.Subnet, f.PrivateIP, f.Zones = "AA", "/subnet/X", netip.MustParseAddr("10.0.0.4"), []string{"1", "2", "3"}
	next.Rules[1].Name, next.Rules[1].Frontend, next.Rules[1].TCPReset = "AA-tcp-80", "AA", nil
	next.Probes[1].Name = "AA-tcp-80"
	expect(t, Make(Input{Observed: next, Services: []ServiceParts{s}}))
}

func TestServicesShareAnAddress(t *testing.T) {
	first, second := newTestParts("aa", 80), newTestParts("ab", 443)
	second.Frontends[0].PublicIP = "/PIP/aa"
	p := Make(Input{Observed: foreign(), Services: []ServiceParts{first, second}})
	rule := p.Next.Rules[2]
	if len(p.Rejected) > 0 || len(p.Next.Frontends) != 3 || rule.Name != "ab-TCP-443" || rule.Frontend != "aa" {
		t.Fatalf("%+v, refused %v", p.Next, p.Rejected)
	}
	// The creator of the frontend leaves; the other Service retains it.
	p = expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{gone("aa")}}), "remove rule aa-TCP-80", "remove probe aa-TCP-80")
	expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{second}}))
	// The frontend is removed with the last Service.
	expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{gone("ab")}}), "remove rule ab-TCP-443", "remove frontend aa", "remove probe ab-TCP-443")
}

func TestServicesShareAPrivateAddress(t *testing.T) {
	at := func(s ServiceParts, static bool) ServiceParts {
		s.Frontends[0] = lb.Frontend{Name: s.Owner, Subnet: "/subnet", Static: static, PrivateIP: netip.MustParseAddr("10.0.0.9")}
		return s
	}
	p := Make(Input{Observed: foreign(), Services: []ServiceParts{at(newTestParts("aa", 80), true), at(newTestParts("ab", 443), true), at(newTestParts("ac", 80), false)}})
	if len(p.Next.Frontends) != 4 {
		t.Errorf("%+v", p.Next.Frontends)
	}
}

func TestLaterServiceIsRejected(t *testing.T) {
	first, second := newTestParts("aa", 80), newTestParts("ab", 80)
	second.Frontends[0].PublicIP = "/pip/aa"
	p := expect(t, Make(Input{Observed: foreign(), Services: []ServiceParts{first, second, newTestParts("ac", 80)}}),
		"add pool kubernetes", "add probe aa-TCP-80", "add probe ac-TCP-80", "add frontend aa", "add frontend ac", "add rule aa-TCP-80", "add rule ac-TCP-80")
	if err := p.Rejected["ab"]; len(p.Rejected) != 1 || !errors.Is(err, ErrPortTaken) || !strings.Contains(err.Error(), "by rule aa-TCP-80, Tcp port 80") {
		t.Errorf("%v", p.Rejected)
	}
}

func TestClashes(t *testing.T) {
	rule := func(transport lb.Transport, frontend string, port, backend int32, floating bool) lb.Rule {
		return lb.Rule{Name: "r", Transport: transport, Frontend: frontend, Pool: "p", FrontendPort: port, BackendPort: backend, FloatingIP: floating}
	}
	tests := []struct {
		about string
		a, b  lb.Rule
		clash bool
	}{
		{"same port", rule(lb.TCP, "f", 80, 80, true), rule(lb.TCP, "F", 80, 81, true), true},
		{"other transport", rule(lb.TCP, "f", 80, 80, true), rule(lb.UDP, "f", 80, 80, true), false},
		{"other port", rule(lb.TCP, "f", 80, 80, true), rule(lb.TCP, "f", 81, 80, true), false},
		{"other frontend", rule(lb.TCP, "f", 80, 80, true), rule(lb.TCP, "g", 80, 80, true), false},
		{"all ports beside one", rule(lb.All, "f", 0, 0, true), rule(lb.UDP, "f", 53, 53, true), true},
		{"one beside all ports", rule(lb.UDP, "f", 53, 53, true), rule(lb.All, "f", 0, 0, true), true},
		{"same backend port without floating IP", rule(lb.TCP, "f", 80, 30080, false), rule(lb.TCP, "g", 81, 30080, false), true},
		{"one of them floats", rule(lb.TCP, "f", 80, 30080, false), rule(lb.TCP, "g", 81, 30080, true), false},
		{"all ports of a pool without floating IP", rule(lb.All, "f", 0, 0, false), rule(lb.TCP, "g", 81, 30080, false), true},
	}
	for _, tt := range tests {
		at := func(r lb.Rule) placedRule { return placedRule{r, strings.ToLower(r.Frontend)} }
		taken := newRuleIndex()
		taken.addRule(at(tt.a))
		if err := (Input{}).checkPortConflict(taken, at(tt.b)); (err != nil) != tt.clash {
			t.Errorf("%s: %v", tt.about, err)
		}
	}
}

// Azure rejects two rules without floating IP for one backend port of a network interface, whatever the pools.
func TestBackendPortsOfMachines(t *testing.T) {
	members := func(name string, interfaces ...string) lb.Pool {
		p := pool(name)
		p.NIC = true
		for _, i := range interfaces {
			p.Addresses = append(p.Addresses, lb.Address{Name: i, Interface: "/NIC/" + i})
		}
		return p
	}
	observed := lb.LoadBalancer{
		ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1", Frontends: []lb.Frontend{{Name: "theirs", PublicIP: "/pip/theirs"}},
		Pools: []lb.Pool{members("Kubernetes", "a", "b"), members("theirs", "B", "c"), members("apart", "d")},
		Rules: []lb.Rule{
			{Name: "theirs", Transport: lb.TCP, Frontend: "theirs", Pool: "theirs", FrontendPort: 1, BackendPort: 30080},
			{Name: "apart", Transport: lb.TCP, Frontend: "theirs", Pool: "apart", FrontendPort: 2, BackendPort: 30081},
		},
	}
	for _, tt := range []struct {
		about     string
		transport lb.Transport
		port      int32
		floating  bool
		reject    bool
	}{
		{"a port of another pool of the machines", lb.TCP, 30080, false, true},
		{"floating IP", lb.TCP, 30080, true, false},
		{"another transport", lb.UDP, 30080, false, false},
		{"a pool of other machines", lb.TCP, 30081, false, false},
		{"another port", lb.TCP, 30082, false, false},
	} {
		s, other := newTestParts("aa", 80), newTestParts("ab", 443)
		s.Rules[0].Transport, s.Rules[0].BackendPort, s.Rules[0].FloatingIP = tt.transport, tt.port, tt.floating
		p := Make(Input{Observed: observed, Services: []ServiceParts{s, other}})
		err := p.Rejected["aa"]
		if (err != nil) != tt.reject || p.Rejected["ab"] != nil {
			t.Errorf("%s: rejected %v", tt.about, p.Rejected)
		}
		if want := "rule theirs already sends Tcp flows to port 30080 of machines that are in pool kubernetes, too, by pool theirs"; tt.reject && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", tt.about, err)
		}
	}
}

func TestTheRuleLimit(t *testing.T) {
	in := Input{Observed: foreign(), MaxRules: 3, Services: []ServiceParts{newTestParts("aa", 80), newTestParts("ab", 80, 443), newTestParts("ac", 80)}}
	p := Make(in)
	if len(p.Next.Rules) != 3 || len(p.Rejected) != 1 || !strings.Contains(fmt.Sprint(p.Rejected["ab"]), "would have 4 rules, and may have 3") {
		t.Errorf("%d rules, refused %v", len(p.Next.Rules), p.Rejected)
	}
	// A Service over a lowered limit may remove rules.
	p = Make(Input{Observed: Make(Input{Observed: foreign(), Services: in.Services}).Next, MaxRules: 1, Services: []ServiceParts{newTestParts("ab", 80)}})
	if len(p.Rejected) != 0 || len(p.Next.Rules) != 4 {
		t.Errorf("%d rules, refused %v", len(p.Next.Rules), p.Rejected)
	}
}

func TestPools(t *testing.T) {
	localParts := newTestParts("aa", 80)
	localParts.Pools, localParts.DedicatedPools = []lb.Pool{pool("shop-web")}, []string{"shop-web", "shop-web-ipv6"}
	localParts.Rules[0].Pool = "shop-web"
	p := Make(Input{Observed: foreign(), Services: []ServiceParts{localParts}})
	cluster := newTestParts("aa", 80)
	cluster.DedicatedPools = localParts.DedicatedPools
	p = expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{cluster}}), "add pool kubernetes", "change rule aa-TCP-80", "remove pool shop-web")
	// One with other references stays.
	next := p.Next
	next.Pinned = map[string]bool{"kubernetes": true}
	p = Make(Input{Observed: next, Services: []ServiceParts{gone("aa", "kubernetes")}})
	if !containsName(poolNames(p.Next.Pools), "kubernetes") {
		t.Error("a pool went that an outbound rule needs")
	}
}

// A pool with foreign members stays, and with it its load balancer.
func TestAPoolWithAddressesOfOthersStays(t *testing.T) {
	other := []string{"192.0.2.7"}
	shared, own := pool("kubernetes"), pool("shop-web")
	for i, p := range []*lb.Pool{&shared, &own} {
		p.Addresses = []lb.Address{{Name: "n1", IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}, {Name: "theirs", IP: netip.MustParseAddr(other[0])}}
	}
	local := newTestParts("aa", 80)
	local.Rules[0].Pool, local.DedicatedPools = "shop-web", []string{"shop-web"}
	local.Pools = []lb.Pool{own}
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1", Pools: []lb.Pool{shared}}
	before := Make(Input{Observed: empty, Services: []ServiceParts{local}}).Next
	cluster := newTestParts("aa", 80)
	cluster.DedicatedPools = local.DedicatedPools
	held := gone("aa", "shop-web")
	held.RecordedPools = held.DedicatedPools
	of := func(names ...string) map[string][]string {
		values := map[string][]string{}
		for _, name := range names {
			values[name] = other
		}
		return values
	}
	for _, tt := range []struct {
		about    string
		observed lb.LoadBalancer
		share    ServiceParts
		foreign  map[string][]string
		pools    []string // remaining pools; none if the load balancer is deleted
		kept     []string
	}{
		{"all ours", before, cluster, nil, []string{"kubernetes"}, nil},
		{"Local becomes Cluster", before, cluster, of("shop-web"), []string{"kubernetes", "shop-web"}, []string{"shop-web"}},
		{"the Service goes, all ours", before, gone("aa", "shop-web"), nil, nil, nil},
		{"the Service goes", before, gone("aa", "shop-web"), of("shop-web"), []string{"kubernetes", "shop-web"}, []string{"shop-web"}},
		{"the last Service goes", before, gone("aa", "shop-web"), of("kubernetes"), []string{"kubernetes"}, []string{"kubernetes"}},
		{"both", before, gone("aa", "shop-web"), of("kubernetes", "shop-web"), []string{"kubernetes", "shop-web"}, []string{"shop-web"}},
		{"a try later, on record", Make(Input{Observed: before, Services: []ServiceParts{cluster}, ForeignMembers: of("shop-web")}).Next, held, of("shop-web"), []string{"kubernetes", "shop-web"}, []string{"shop-web"}},
		{"a pool of that name that never was its", lb.LoadBalancer{Etag: "1", Pools: []lb.Pool{own}}, gone("aa", "shop-web"), of("shop-web"), []string{"shop-web"}, nil},
	} {
		t.Run(tt.about, func(t *testing.T) {
			in := Input{Observed: tt.observed, Services: []ServiceParts{tt.share}, SharedPools: []string{"kubernetes"}, ForeignMembers: tt.foreign}
			p := Make(in)
			if p.Delete != (tt.pools == nil) {
				t.Fatalf("deleted %t", p.Delete)
			}
			if tt.pools != nil && !slices.Equal(poolNames(p.Next.Pools), tt.pools) {
				t.Errorf("stay %v, want %v", poolNames(p.Next.Pools), tt.pools)
			}
			var kept []string
			for _, k := range p.RetainedParts {
				if k.Frontend == nil { // see retain_test.go
					kept = append(kept, k.Pool.Name)
				}
			}
			if !slices.Equal(kept, tt.kept) {
				t.Errorf("kept %v, want %v", p.RetainedParts, tt.kept)
			}
			if in.Observed = p.Next; !p.Delete && !Make(in).IsEmpty() {
				t.Error("planned again it is something")
			}
		})
	}
}

// Azure rejects deleting a load balancer with network interfaces in pools: other parts are removed first, and
// it stays until Weir's have left. Foreign ones retain it.
func TestALoadBalancerGoesWhenItsInterfacesHaveLeft(t *testing.T) {
	nic := func(name string, members ...string) lb.Pool {
		p := pool(name)
		for _, m := range members {
			p.NIC, p.Addresses = true, append(p.Addresses, lb.Address{Name: m})
		}
		return p
	}
	emptying := func(names ...string) map[string]int {
		items := map[string]int{}
		for _, name := range names {
			items[name] = 2
		}
		return items
	}
	rules := Make(Input{Observed: lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1"}, Services: []ServiceParts{newTestParts("aa", 80)}}).Next.Rules
	for _, tt := range []struct {
		about    string
		pools    []lb.Pool
		share    ServiceParts
		rules    []lb.Rule
		emptying map[string]int
		foreign  map[string][]string
		deleted  bool
		stay     string // the pools
		output   string
	}{
		{about: "the last Service goes", pools: []lb.Pool{nic("kubernetes", "n1", "n2")}, share: gone("aa"), rules: rules, emptying: emptying("kubernetes"), stay: "kubernetes",
			output: "load balancer kubernetes is deleted when its 2 network interfaces have left backend pool kubernetes"},
		{about: "its rules have gone", pools: []lb.Pool{nic("kubernetes", "n1", "n2")}, share: gone("aa"), emptying: emptying("kubernetes"), stay: "kubernetes",
			output: "load balancer kubernetes is deleted when its 2 network interfaces have left backend pool kubernetes"},
		{about: "of two families", pools: []lb.Pool{nic("kubernetes", "n1", "n2"), nic("kubernetes-IPv6", "n1", "n2")}, share: gone("aa"), emptying: map[string]int{"kubernetes": 1, "kubernetes-ipv6": 0}, stay: "kubernetes kubernetes-IPv6",
			output: "load balancer kubernetes is deleted when its network interface has left backend pool kubernetes; load balancer kubernetes is deleted when its network interfaces have left backend pool kubernetes-IPv6"},
		{about: "they leave as soon as somebody waits for that", pools: []lb.Pool{nic("kubernetes", "n1", "n2")}, share: gone("aa"), rules: rules, emptying: emptying(), deleted: true},
		{about: "they have left", pools: []lb.Pool{nic("kubernetes")}, share: gone("aa"), deleted: true},
		{about: "those of others have not", pools: []lb.Pool{nic("kubernetes", "theirs")}, share: gone("aa"), emptying: emptying(), foreign: map[string][]string{"kubernetes": {"network interface theirs"}}, stay: "kubernetes",
			output: "load balancer kubernetes with its backend pool kubernetes is no longer needed and is retained: network interface theirs in it belongs to another owner, which has to remove it, or delete the pool"},
		{about: "a rule of another owner's", pools: []lb.Pool{nic("kubernetes", "n1", "n2")}, share: gone("ab"), rules: rules, emptying: emptying("kubernetes"), stay: "kubernetes"},
		{about: "a pool that is called as a Service's own", pools: []lb.Pool{nic("kubernetes"), nic("shop-web", "theirs")}, share: ServiceParts{Owner: "aa", DedicatedPools: []string{"shop-web"}, ManagedPools: []string{"shop-web"}}, emptying: emptying(), stay: "kubernetes shop-web"},
		{about: "unread interfaces", pools: []lb.Pool{nic("kubernetes", "n1", "n2")}, share: gone("aa"), rules: rules, stay: "kubernetes"},
		{about: "that of all nodes is called as a Service's own", pools: []lb.Pool{nic("kubernetes", "n1", "n2")}, share: ServiceParts{Owner: "aa", DedicatedPools: []string{"Kubernetes"}}, rules: rules, emptying: emptying("kubernetes"), stay: "kubernetes",
			output: "load balancer kubernetes is deleted when its 2 network interfaces have left backend pool kubernetes"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			in := Input{
				Observed: lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1", Pools: tt.pools, Rules: tt.rules}, Services: []ServiceParts{tt.share},
				SharedPools: []string{"kubernetes", "kubernetes-IPv6"}, RemainingInterfaces: tt.emptying, ForeignMembers: tt.foreign,
			}
			p := Make(in)
			var messages []string
			for _, k := range p.RetainedParts {
				messages = append(messages, k.String())
			}
			for _, e := range p.DrainingPools {
				messages = append(messages, e.String())
			}
			if p.Delete != tt.deleted || strings.Join(messages, "; ") != tt.output || !p.Delete && strings.Join(poolNames(p.Next.Pools), " ") != tt.stay {
				t.Errorf("deleted %v, pools %v, said %q", p.Delete, poolNames(p.Next.Pools), messages)
			}
			if in.Observed = p.Next; !p.Delete && !Make(in).IsEmpty() {
				t.Error("planned again it is something")
			}
		})
	}
}

func TestRetainedPoolMessage(t *testing.T) {
	k := RetainedPart{Pool: lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "kubernetes"}, Name: "shop-web"}, Owner: "aa"}
	for i := range byte(7) {
		k.Members = append(k.Members, netip.AddrFrom4([4]byte{10, 0, 0, i}).String())
	}
	want := "backend pool shop-web of load balancer kubernetes is no longer needed and is retained: 10.0.0.0, 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4 and 2 more in it belong to another owner, which has to remove it, or delete the pool"
	if got := k.String(); got != want {
		t.Error(got)
	}
	k.Owner, k.Members = "", k.Members[:1]
	if got := k.String(); !strings.HasPrefix(got, "load balancer kubernetes with its backend pool shop-web is no longer needed and is retained: 10.0.0.0 in it belongs to another owner") {
		t.Error(got)
	}
}

func TestAnUnusedSharedProbeGoes(t *testing.T) {
	s := newTestParts("aa", 80)
	s.Probes, s.Rules[0].Probe = []lb.Probe{{Name: "shared"}}, "shared"
	in := Input{Observed: foreign(), Services: []ServiceParts{s}, SharedProbes: []string{"shared"}}
	p := Make(in)
	in.Observed, in.Services = p.Next, []ServiceParts{newTestParts("aa", 80)}
	expect(t, Make(in), "add probe aa-TCP-80", "change rule aa-TCP-80", "remove probe shared")
}

func TestALoadBalancerWithoutAnythingIsDeleted(t *testing.T) {
	in := Input{Observed: lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}, Services: []ServiceParts{newTestParts("aa", 80)}, SharedPools: []string{"kubernetes"}}
	p := Make(in)
	if p.Delete {
		t.Error("deleted while it is wanted")
	}
	in.Observed, in.Services = p.Next, []ServiceParts{gone("aa")}
	if p = Make(in); p.Delete {
		t.Error("one that does not exist is deleted")
	}
	in.Observed.Etag = "1"
	if p = Make(in); !p.Delete || len(p.Changes) != 4 {
		t.Errorf("delete %v: %v", p.Delete, spell(p.Changes))
	}
	in.Observed.Pools = append(slices.Clone(in.Observed.Pools), pool("somebody's"))
	if p = Make(in); p.Delete {
		t.Error("deleted with somebody's pool")
	}
}

// An empty load balancer is foreign, unless the plan removes parts of a Service or it has the shared node pool.
func TestAnEmptyLoadBalancerOfOthersStays(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes-internal"}, Etag: "1"}
	if p := Make(Input{Observed: empty, Services: []ServiceParts{gone("a1")}, SharedPools: []string{"kubernetes"}}); !p.IsEmpty() {
		t.Errorf("deleted: %v", spell(p.Changes))
	}
	empty.Pools = []lb.Pool{pool("kubernetes")}
	if p := Make(Input{Observed: empty, Services: []ServiceParts{gone("a1")}, SharedPools: []string{"kubernetes"}}); !p.Delete {
		t.Error("one that Services had stays")
	}
}

// A pool with the name of a Service's own is not the Service's without a rule.
func TestAPoolOfASimilarNameStays(t *testing.T) {
	blue := pool("team-blue")
	blue.Addresses = []lb.Address{{Name: "vm", IP: netip.MustParseAddr("10.0.0.9")}}
	observed := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1", Pools: []lb.Pool{blue}}
	s := newTestParts("a1", 80)
	s.DedicatedPools = []string{"team-blue"}
	expect(t, Make(Input{Observed: observed, Services: []ServiceParts{s}, SharedPools: []string{"kubernetes"}}),
		"add pool kubernetes", "add probe a1-TCP-80", "add frontend a1", "add rule a1-TCP-80")
}

// If its own pool would have the name of the pool of all nodes, a Service uses that one, with or without rules of others.
func TestTheNameOfAServiceThatMakesThatOfThePoolOfAllNodes(t *testing.T) {
	full := pool("Team-Blue")
	full.Addresses = []lb.Address{{Name: "vm", IP: netip.MustParseAddr("10.0.0.9")}}
	s := newTestParts("aa", 80)
	s.Rules[0].Pool, s.Pools, s.DedicatedPools = "team-blue", []lb.Pool{pool("team-blue")}, []string{"team-blue", "team-blue-ipv6"}
	for about, rules := range map[string][]lb.Rule{
		"no rules":          nil,
		"rules of a second": {{Name: "ab-TCP-81", Transport: lb.TCP, Frontend: "ab", Pool: "team-blue", FrontendPort: 81, BackendPort: 81, FloatingIP: true}},
	} {
		in := Input{Services: []ServiceParts{s}, SharedPools: []string{"team-blue", "team-blue-IPv6"}, Observed: lb.LoadBalancer{
			ID: lb.LoadBalancerID{Name: "team-blue"}, Etag: "1", Pools: []lb.Pool{full}, Rules: rules,
			Frontends: []lb.Frontend{{Name: "ab", PublicIP: "/pip/ab"}},
		}}
		if err := Make(in).Rejected["aa"]; err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// A pool with addresses and without rules is foreign, unless recorded. Pools of Services have rules, whatever
// controller made them.
func TestAPoolOfOthersIsNotTakenOver(t *testing.T) {
	full := pool("Team-Blue")
	full.Addresses = []lb.Address{{Name: "vm", IP: netip.MustParseAddr("10.0.0.9")}}
	nic := pool("team-blue")
	nic.NIC = true
	ruled := func(owner string) []lb.Rule {
		return []lb.Rule{{Name: owner + "-TCP-81", Transport: lb.TCP, Frontend: owner, Pool: "team-blue", FrontendPort: 81, BackendPort: 81, FloatingIP: true}}
	}
	for _, tt := range []struct {
		about   string
		pool    lb.Pool
		rules   []lb.Rule
		held    []string
		leaving string
		knows   func(string) string
		want    error
	}{
		{about: "somebody's", pool: full, want: ErrPoolForeign},
		{about: "somebody's with network interfaces", pool: nic, want: ErrPoolForeign},
		{about: "an empty one", pool: pool("team-blue")},
		{about: "on record as its own", pool: full, held: []string{"team-blue"}},
		{about: "with a rule of its own, as the Azure cloud provider left it", pool: full, rules: ruled("aa")},
		{about: "with a rule of another Service", pool: full, rules: ruled("ab"), want: ErrPoolTaken},
		{about: "with a rule of another Service that is known", pool: full, rules: ruled("ab"), knows: func(string) string { return "team/blue" }, want: ErrPoolTaken},
		{about: "with a rule of no Service of the cluster", pool: full, rules: ruled("ab"), knows: func(string) string { return "" }, want: ErrPoolForeign},
		{about: "with a rule of one that leaves", pool: full, rules: ruled("ab"), leaving: "ab"},
	} {
		s := newTestParts("aa", 80)
		s.Rules[0].Pool, s.Pools, s.DedicatedPools, s.RecordedPools = "team-blue", []lb.Pool{pool("team-blue")}, []string{"team-blue"}, tt.held
		in := Input{Services: []ServiceParts{s}, Observed: lb.LoadBalancer{
			ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1", Pools: []lb.Pool{tt.pool}, Rules: tt.rules,
			Frontends: []lb.Frontend{{Name: "aa", PublicIP: "/pip/aa"}, {Name: "ab", PublicIP: "/pip/ab"}},
		}, ServiceOf: tt.knows}
		if tt.leaving != "" {
			in.Services = append(in.Services, gone(tt.leaving, "team-blue"))
		}
		if err := Make(in).Rejected["aa"]; !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.about, err, tt.want)
		}
	}
}
