// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/test/referencepage"
)

func address(name, ip, state string) lb.Address {
	return lb.Address{Name: name, IP: netip.MustParseAddr(ip), AdminState: state}
}

// example has every kind of change missing in the command's tests.
func example() Report {
	id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}
	pip := func(name string) lb.ResourceID {
		return lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: name}
	}
	reset := true
	before := lb.LoadBalancer{
		ID: id, Etag: "1", SKU: lb.Standard, Tags: map[string]string{"team": "", "old": "x"}, Provisioning: lb.Failed,
		Frontends: []lb.Frontend{{Name: "a1", PublicIP: pip("one").String(), Zones: []string{"1", "2"}}},
		Pools: []lb.Pool{{ID: lb.PoolID{LoadBalancer: id, Name: "web"}, Addresses: []lb.Address{
			address("n1", "10.0.0.4", ""), address("n2", "10.0.0.5", lb.Down), address("n2-again", "10.0.0.5", ""), address("n3", "10.0.0.6", ""),
		}}, {ID: lb.PoolID{LoadBalancer: id, Name: "gone"}, Addresses: []lb.Address{address("n1", "10.0.0.4", "")}}},
		Rules: []lb.Rule{{Name: "a1-TCP-80", Frontend: "a1", Pool: "web", Transport: lb.TCP, FrontendPort: 80, BackendPort: 80, TCPReset: &reset}},
	}
	next := before
	next.Tags, next.Provisioning = map[string]string{"team": "net", "empty": ""}, lb.Succeeded
	next.Frontends = []lb.Frontend{{Name: "a1", Subnet: "/subscriptions/s/subnets/apps", PrivateIP: netip.MustParseAddr("10.0.0.9"), Static: true}}
	next.Pools = []lb.Pool{{ID: before.Pools[0].ID, Addresses: []lb.Address{
		address("n1", "10.0.0.4", lb.Down), address("n2", "10.0.0.5", lb.None), address("n4", "10.0.0.7", lb.Down),
	}}}
	next.Rules = nil
	p := NewReport(Changes{
		LoadBalancers: []ResourceChange[lb.LoadBalancer]{{Before: before, After: next}, {Before: lb.LoadBalancer{ID: id, Etag: "2"}, After: lb.LoadBalancer{ID: id}}},
		PublicIPs: []ResourceChange[lb.PublicIP]{
			{Before: lb.PublicIP{ID: pip("kubernetes-a1"), Etag: "1", DNSLabel: "web"}, After: lb.PublicIP{ID: pip("kubernetes-a1")}},
			{Before: lb.PublicIP{ID: pip("same"), Etag: "1"}, After: lb.PublicIP{ID: pip("same"), Etag: "1"}},
			{Before: lb.PublicIP{ID: pip("never")}, After: lb.PublicIP{ID: pip("never")}},
		},
		Groups: []ResourceChange[lb.SecurityGroup]{{
			Before: lb.SecurityGroup{ID: pip("nsg"), Rules: []lb.SecurityRule{{Name: "kept", Destinations: []string{"20.0.0.1", "20.0.0.2"}}, {Name: "gone"}}},
			After:  lb.SecurityGroup{ID: pip("nsg"), Rules: []lb.SecurityRule{{Name: "kept", Destinations: []string{"20.0.0.2", "240.0.0.1"}}}},
		}},
		PoolWrites:   1,
		Placeholders: map[netip.Addr]string{netip.MustParseAddr("240.0.0.1"): "public IP new"},
	}, map[string]string{"a1": "shop/web"})
	p.AddService(ServiceReport{Service: "shop/web", Note: "the same"}, nil, nil)
	p.AddService(ServiceReport{Service: "shop/db", Note: "the same"}, nil, nil)
	p.AddService(ServiceReport{Service: "shop/api", Refused: "for a reason", Note: "another"}, nil, nil)
	p.Pools = []PoolReport{{BackendPool: "shop/paused", Why: "spec.paused is set"}}
	p.Notes = []string{"something is not known"}
	return p
}

func TestText(t *testing.T) {
	referencepage.ExpectFile(t, "testdata/plan.txt", example().FormatText(false))
}

// Entries without an address are identified by name: a cluster's own load balancer may have pools
// of network interfaces.
func TestEntriesWithoutAnAddress(t *testing.T) {
	nic := func(name, state string) lb.Address {
		return lb.Address{Name: name, Interface: "/subscriptions/s/" + name, AdminState: state}
	}
	before := lb.Pool{Addresses: []lb.Address{nic("one", ""), nic("two", lb.None), nic("three", "")}}
	if got := diffMembers(before, before); len(got) != 0 {
		t.Errorf("nothing differs, and members are %+v", got)
	}
	pool := lb.Pool{Addresses: []lb.Address{nic("one", lb.None), nic("two", lb.Down)}}
	var texts []string
	for _, m := range diffMembers(before, pool) {
		texts = append(texts, string(m.Action)+" "+formatMember(m))
	}
	if got, want := strings.Join(texts, "; "), "remove three; change two: admin state None → Down"; got != want {
		t.Errorf("members are %q, want %q", got, want)
	}
}

// An incomplete plan does not state that nothing would change.
func TestAPlanThatIsNotComplete(t *testing.T) {
	p := Report{Services: []ServiceReport{{Service: "shop/a", Failed: "busy"}, {Service: "shop/b", Failed: "busy"}, {Service: "shop/c", Refused: "no"}}}
	want := "! Service shop/c is refused: no\n! Service shop/a and 1 other could not be planned: busy\n\n" +
		"Not complete (3 Services, 1 refused, 2 could not be planned).\n"
	if got := p.FormatText(false); got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}

// An event has room for one line.
func TestBrief(t *testing.T) {
	referencepage.ExpectFile(t, "testdata/brief.txt", example().FormatBrief()+"\n"+Report{}.FormatBrief()+"\n")
}

// On a terminal changes are colored, and nothing else differs.
func TestColours(t *testing.T) {
	colourful := example().FormatText(true)
	for _, line := range []string{"\x1b[33m~ load balancer", "\x1b[31m- rule a1-TCP-80", "\x1b[32m+ 10.0.0.7", "\x1b[1;31m! Service shop/api"} {
		if !strings.Contains(colourful, line) {
			t.Errorf("no line begins with %q", line)
		}
	}
	for _, c := range actionColors {
		colourful = strings.ReplaceAll(colourful, c, "")
	}
	if plain := strings.ReplaceAll(colourful, resetColor, ""); plain != example().FormatText(false) {
		t.Errorf("without colours it is\n%s", plain)
	}
}

// JSON has the same content, and empty lists instead of null.
func TestJSON(t *testing.T) {
	raw, err := example().FormatJSON()
	if err != nil {
		t.Fatal(err)
	}
	referencepage.ExpectFile(t, "testdata/plan.json", string(raw))
	raw, err = NewReport(Changes{}, nil).FormatJSON()
	var none map[string]any
	if err != nil || json.Unmarshal(raw, &none) != nil || none["resources"] == nil || none["services"] == nil || none["changes"] != 0.0 {
		t.Errorf("an empty plan is %s, %v", raw, err)
	}
}

// A pool with a new drain period and new members is one part.
func TestPoolWithDrainPeriod(t *testing.T) {
	id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}
	pool := lb.Pool{ID: lb.PoolID{LoadBalancer: id, Name: "web"}}
	next := pool
	next.DrainSeconds, next.Addresses = new(int32(30)), []lb.Address{address("n1", "10.0.0.4", "")}
	balancer := func(p lb.Pool) lb.LoadBalancer {
		return lb.LoadBalancer{ID: id, Etag: "1", Pools: []lb.Pool{p}}
	}
	r := NewReport(Changes{LoadBalancers: []ResourceChange[lb.LoadBalancer]{{Before: balancer(pool), After: balancer(next)}}}, nil)
	parts := r.Resources[0].Parts
	if len(parts) != 1 || len(parts[0].Members) != 1 || !strings.Contains(r.FormatText(false), "drainSeconds: none → 30") {
		t.Errorf("%+v\n%s", parts, r.FormatText(false))
	}
}

func TestGatewayLoadBalancerIsShown(t *testing.T) {
	before := lb.LoadBalancer{Etag: "1", Frontends: []lb.Frontend{{Name: "a1", PublicIP: "/pip"}}}
	after := before
	after.Frontends = []lb.Frontend{{Name: "a1", PublicIP: "/pip", GatewayLoadBalancer: new("/hub/in")}}
	r := NewReport(Changes{LoadBalancers: []ResourceChange[lb.LoadBalancer]{{Before: before, After: after}}}, nil)
	if text, _ := json.Marshal(r); !strings.Contains(string(text), `"gatewayLoadBalancer"`) || !strings.Contains(string(text), `"/hub/in"`) {
		t.Errorf("%s", text)
	}
}
