// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func connected(names ...string) func(*lb.PrivateLinkService) {
	return func(p *lb.PrivateLinkService) {
		for _, name := range names {
			p.Connections = append(p.Connections, lb.PrivateEndpointConnection{Name: name, Endpoint: "/pe/" + name, Status: lb.ConnectionApproved, Provisioning: lb.Succeeded})
		}
	}
}

func state(s lb.Provisioning) func(*lb.PrivateLinkService) {
	return func(p *lb.PrivateLinkService) { p.Provisioning = s }
}

func onFrontend(ids ...string) func(*lb.PrivateLinkService) {
	return func(p *lb.PrivateLinkService) { p.Frontends = ids }
}

func as(name string) func(*lb.PrivateLinkService) {
	return func(p *lb.PrivateLinkService) { p.ID.Name = name }
}

func foreignOne(p *lb.PrivateLinkService) { p.Tags = nil }

func TestNext(t *testing.T) {
	t.Parallel()
	a := asks("n/a", 1)
	none := []Sharer(nil)
	for _, tt := range []struct {
		about   string
		sharers []Sharer
		seen    []lb.PrivateLinkService
		do      Action
		why     string
	}{
		{"nothing is wanted, nothing is there", none, nil, Level, ""},
		{"it is to come", []Sharer{a}, nil, Create, "pls-aaaa is to publish"},
		{"it is there", []Sharer{a}, []lb.PrivateLinkService{made("n/a")}, Level, ""},
		{"it is there, in other capitals and with connections", []Sharer{a}, []lb.PrivateLinkService{made("n/a", as("PLS-AAAA"), onFrontend(strings.ToUpper(frontendA)), connected("pe"))}, Level, ""},
		{"under its tag of before", []Sharer{a}, []lb.PrivateLinkService{made("", tagged(service.TagLinkOwnerBefore, "n/a"))}, Level, ""},
		{"Azure is at it", []Sharer{a}, []lb.PrivateLinkService{made("n/a", state(lb.Updating))}, Wait, "(Updating)"},
		{"it is going, and wanted", []Sharer{a}, []lb.PrivateLinkService{made("n/a", state(lb.Deleting))}, Wait, "(Deleting)"},
		{"its last write failed", []Sharer{a}, []lb.PrivateLinkService{made("n/a", state(lb.Failed))}, Change, "its last write failed"},
		{"something differs", []Sharer{asks("n/a", 1, count(2))}, []lb.PrivateLinkService{made("n/a")}, Change, "addresses any of subnet nodes, Weir wants any, any of subnet nodes"},
		{"a tag differs", []Sharer{a}, []lb.PrivateLinkService{made("n/gone")}, Change, "tag " + service.TagLinkOwner + " n/gone, Weir wants n/a"},
		{"on no frontend", []Sharer{a}, []lb.PrivateLinkService{made("n/a", onFrontend())}, Change, "frontends none"},

		{"it is to go", none, []lb.PrivateLinkService{made("n/a")}, Delete, "nobody asks"},
		{"its connections go first", none, []lb.PrivateLinkService{made("n/a", connected("pe2", "pe1"))}, Disconnect, "connection pe1 of private endpoint /pe/pe1 goes before private link service pls-aaaa does (1 left after it)"},
		{"one is going", none, []lb.PrivateLinkService{made("n/a", connected("pe1", "pe2"), func(p *lb.PrivateLinkService) { p.Connections[1].Provisioning = lb.Deleting })}, Wait, "has yet to lose connection pe2 of private endpoint /pe/pe2 (Deleting)"},
		{"one is going, which Azure shows of the whole, too", none, []lb.PrivateLinkService{made("n/a", state(lb.Updating), connected("pe"), func(p *lb.PrivateLinkService) { p.Connections[0].Provisioning = lb.Deleting })}, Wait, "has yet to lose connection pe"},
		{"it is being written, and is to go", none, []lb.PrivateLinkService{made("n/a", state(lb.Updating), connected("pe"))}, Wait, "(Updating)"},
		{"it is going", none, []lb.PrivateLinkService{made("n/a", state(lb.Deleting), connected("pe"))}, Wait, "(Deleting)"},
		{"it failed, and is to go", none, []lb.PrivateLinkService{made("n/a", state(lb.Failed))}, Delete, ""},
		{"somebody else's stays", none, []lb.PrivateLinkService{made("n/a", foreignOne, connected("pe"))}, Level, ""},
		{"another cluster's stays", none, []lb.PrivateLinkService{made("n/a", tagged(service.TagCluster, "other"))}, Level, ""},
		{"another frontend's stays", none, []lb.PrivateLinkService{made("n/a", onFrontend(frontendB))}, Level, ""},

		{"the name is somebody else's", []Sharer{a}, []lb.PrivateLinkService{made("n/a", foreignOne, onFrontend(frontendB))}, Refuse, service.PLSName},
		{"the name and the frontend are", []Sharer{a}, []lb.PrivateLinkService{made("n/a", foreignOne)}, Refuse, service.PLSName},
		{"the frontend has somebody else's", []Sharer{a}, []lb.PrivateLinkService{made("n/a", foreignOne, as("other"))}, Refuse, service.PLSCreate},
		{"also beside its own", []Sharer{a}, []lb.PrivateLinkService{made("n/a"), made("n/a", foreignOne, as("other"))}, Refuse, service.PLSCreate},
		{"the name is another Service's", []Sharer{a}, []lb.PrivateLinkService{made("n/b", onFrontend(frontendB))}, Refuse, "that of Service n/b"},
		{"it has yet to leave another frontend", []Sharer{a}, []lb.PrivateLinkService{made("n/a", onFrontend(frontendB))}, Wait, frontendB},

		{"another name", []Sharer{asks("n/a", 1, called("mine"))}, []lb.PrivateLinkService{made("n/a")}, Delete, "mine takes the place of pls-aaaa"},
		{"another name, and somebody is connected", []Sharer{asks("n/a", 1, called("mine"))}, []lb.PrivateLinkService{made("n/a", connected("pe"))}, Refuse, "(1 approved)"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			step := Next(frontend(), Share(frontend(), settings(), tt.sharers, tt.seen), tt.seen, nil, settings())
			if step.Do != tt.do || !strings.Contains(step.Why, tt.why) || step.Why == "" && (step.Writes() || step.Do == Wait || step.Do == Refuse) {
				t.Errorf("%s: %s", step.Do, step.Why)
			}
		})
	}
}

// A subnet is opened before its addresses are used, if allowed; otherwise the step explains how.
func TestTheSubnetIsOpenedFirst(t *testing.T) {
	t.Parallel()
	id, err := lb.ParseResourceID(network, lb.TypeVirtualNetwork)
	if err != nil {
		t.Fatal(err)
	}
	closed := lb.Subnet{Network: id, Name: "nodes", Etag: "1", LinkPolicies: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}
	for _, tt := range []struct {
		about  string
		asks   Sharer
		seen   []lb.PrivateLinkService
		change func(*lb.Subnet, *Settings)
		do     Action
		why    string
	}{
		{"it is open", asks("n/a", 1), nil, func(s *lb.Subnet, _ *Settings) { s.LinkPolicies = false }, Create, ""},
		{"it may be opened", asks("n/a", 1), nil, func(_ *lb.Subnet, set *Settings) { set.OpensSubnets = true }, OpenSubnet, "subnet nodes"},
		{"Azure is at it", asks("n/a", 1), nil, func(s *lb.Subnet, set *Settings) { s.Provisioning, set.OpensSubnets = lb.Updating, true }, Wait, "subnet nodes"},
		{"people have to", asks("n/a", 1), nil, func(*lb.Subnet, *Settings) {}, Refuse, "az network vnet subnet update --subscription s --resource-group net --vnet-name v --name nodes --private-link-service-network-policies Disabled"},
		{"it is in there already", asks("n/a", 1, count(2)), []lb.PrivateLinkService{made("n/a")}, func(*lb.Subnet, *Settings) {}, Change, ""},
		{"an address of another range", asks("n/a", 1, fixed("10.1.0.7")), nil, func(s *lb.Subnet, _ *Settings) { s.LinkPolicies = false }, Refuse, "10.1.0.7, which is not of subnet nodes"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			subnet, set := closed, settings()
			tt.change(&subnet, &set)
			v := Share(frontend(), set, []Sharer{tt.asks}, tt.seen)
			if at := SubnetOf(v, tt.seen); !strings.EqualFold(at, closed.String()) {
				t.Errorf("read %q", at)
			}
			step := Next(frontend(), v, tt.seen, &subnet, set)
			if step.Do != tt.do || !strings.Contains(step.Why, tt.why) {
				t.Errorf("%s: %s", step.Do, step.Why)
			}
			if step.Do == OpenSubnet && (step.Subnet.LinkPolicies || step.Subnet.Etag != "1") {
				t.Errorf("%+v", step.Subnet)
			}
		})
	}
	v := Share(frontend(), settings(), []Sharer{asks("n/a", 1)}, []lb.PrivateLinkService{made("n/a")})
	if at := SubnetOf(v, []lb.PrivateLinkService{made("n/a")}); at != "" {
		t.Errorf("nothing changes, and %s is read", at)
	}
}

// A change keeps properties that Weir does not set and the names that consumers use.
func TestAChangeKeepsTheRest(t *testing.T) {
	t.Parallel()
	is := made("n/gone", connected("pe"), tagged("team", "net"), tagged(service.TagLinkOwnerBefore, "n/gone"))
	is.Origin, is.NAT[0].Name, is.NAT[0].Address = "as read", "pls-aaaa-nodes-dynamic-0", addr("10.0.0.200")
	seen := []lb.PrivateLinkService{is}
	step := Next(frontend(), Share(frontend(), settings(), []Sharer{asks("n/a", 1, count(2))}, seen), seen, nil, settings())
	next := step.Service
	if step.Do != Change || next.Origin != "as read" || next.Etag != "1" || next.Alias != is.Alias || len(next.Connections) != 1 {
		t.Fatalf("%+v", step)
	}
	if next.Tags["team"] != "net" || OwnerOf(next) != "n/a" || lb.Tag(next.Tags, service.TagLinkOwnerBefore) != "" {
		t.Errorf("tagged %v", next.Tags)
	}
	if next.NAT[0] != is.NAT[0] || len(next.NAT) != 2 || next.NAT[1].Primary {
		t.Errorf("addresses %+v", next.NAT)
	}
	if OwnerOf(is) != "n/gone" || len(is.NAT) != 1 {
		t.Error("what was read was changed")
	}
}

// A frontend is held by everything that publishes it, whoever created it.
func TestWhatHoldsAFrontend(t *testing.T) {
	t.Parallel()
	seen := []lb.PrivateLinkService{made("n/a", connected("pe")), made("n/a", foreignOne, as("other")), made("n/b", as("b"), onFrontend(frontendB))}
	text := Holding(frontend(), seen)
	if !strings.Contains(text, "/other publishes frontend aaaa (no connections)") || !strings.Contains(text, "/pls-aaaa publishes frontend aaaa (1 approved)") || strings.Contains(text, "bbbb") {
		t.Errorf("%q", text)
	}
	if text := Holding(frontend(), seen[2:]); text != "" {
		t.Errorf("%q", text)
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	p := made("n/a", connected("a", "b", "c", "d"))
	p.Connections[0].Status, p.Connections[1].Status, p.Connections[2].Status = lb.ConnectionPending, lb.ConnectionRejected, "Disconnected"
	if got := Connections(p).String(); got != "1 approved, 1 pending, 1 rejected, 1 in other states" {
		t.Error(got)
	}
}
