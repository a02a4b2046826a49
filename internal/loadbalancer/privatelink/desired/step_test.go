// SPDX-License-Identifier: Apache-2.0

package desired

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
	none := []FrontendService(nil)
	for _, tt := range []struct {
		about   string
		sharers []FrontendService
		seen    []lb.PrivateLinkService
		do      Action
		reason  string
	}{
		{"nothing is wanted, nothing is there", none, nil, ActionInSync, ""},
		{"it is to come", []FrontendService{a}, nil, ActionCreate, "pls-aaaa is to publish"},
		{"it is there", []FrontendService{a}, []lb.PrivateLinkService{made("n/a")}, ActionInSync, ""},
		{"it is there, in other capitals and with connections", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", as("PLS-AAAA"), onFrontend(strings.ToUpper(frontendA)), connected("pe"))}, ActionInSync, ""},
		{"under its tag of before", []FrontendService{a}, []lb.PrivateLinkService{made("", tagged(service.TagLinkOwnerBefore, "n/a"))}, ActionInSync, ""},
		{"Azure is at it", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", state(lb.Updating))}, ActionWait, "(Updating)"},
		{"it is going, and wanted", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", state(lb.Deleting))}, ActionWait, "(Deleting)"},
		{"its last write failed", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", state(lb.Failed))}, ActionUpdate, "its last write failed"},
		{"something differs", []FrontendService{asks("n/a", 1, count(2))}, []lb.PrivateLinkService{made("n/a")}, ActionUpdate, "addresses any of subnet nodes, Weir wants any, any of subnet nodes"},
		{"a tag differs", []FrontendService{a}, []lb.PrivateLinkService{made("n/gone")}, ActionUpdate, "tag " + service.TagLinkOwner + " n/gone, Weir wants n/a"},
		{"on no frontend", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", onFrontend())}, ActionUpdate, "frontends none"},

		{"it is to go", none, []lb.PrivateLinkService{made("n/a")}, ActionDelete, "no Service requests"},
		{"its connections go first", none, []lb.PrivateLinkService{made("n/a", connected("pe2", "pe1"))}, ActionDisconnect, "connection pe1 of private endpoint /pe/pe1 is deleted before private link service pls-aaaa (1 left after it)"},
		{"one is going", none, []lb.PrivateLinkService{made("n/a", connected("pe1", "pe2"), func(p *lb.PrivateLinkService) { p.Connections[1].Provisioning = lb.Deleting })}, ActionWait, "has yet to lose connection pe2 of private endpoint /pe/pe2 (Deleting)"},
		{"one is going, which Azure shows of the whole, too", none, []lb.PrivateLinkService{made("n/a", state(lb.Updating), connected("pe"), func(p *lb.PrivateLinkService) { p.Connections[0].Provisioning = lb.Deleting })}, ActionWait, "has yet to lose connection pe"},
		{"it is being written, and is to go", none, []lb.PrivateLinkService{made("n/a", state(lb.Updating), connected("pe"))}, ActionWait, "(Updating)"},
		{"it is going", none, []lb.PrivateLinkService{made("n/a", state(lb.Deleting), connected("pe"))}, ActionWait, "(Deleting)"},
		{"it failed, and is to go", none, []lb.PrivateLinkService{made("n/a", state(lb.Failed))}, ActionDelete, ""},
		{"another owner's stays", none, []lb.PrivateLinkService{made("n/a", foreignOne, connected("pe"))}, ActionInSync, ""},
		{"another cluster's stays", none, []lb.PrivateLinkService{made("n/a", tagged(service.TagCluster, "other"))}, ActionInSync, ""},
		{"another frontend's stays", none, []lb.PrivateLinkService{made("n/a", onFrontend(frontendB))}, ActionInSync, ""},

		{"the name is another owner's", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", foreignOne, onFrontend(frontendB))}, ActionReject, service.PLSName},
		{"the name and the frontend are", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", foreignOne)}, ActionReject, service.PLSName},
		{"the frontend has another owner's", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", foreignOne, as("other"))}, ActionReject, service.PLSCreate},
		{"also beside its own", []FrontendService{a}, []lb.PrivateLinkService{made("n/a"), made("n/a", foreignOne, as("other"))}, ActionReject, service.PLSCreate},
		{"the name is another Service's", []FrontendService{a}, []lb.PrivateLinkService{made("n/b", onFrontend(frontendB))}, ActionReject, "that of Service n/b"},
		{"it has yet to leave another frontend", []FrontendService{a}, []lb.PrivateLinkService{made("n/a", onFrontend(frontendB))}, ActionWait, frontendB},

		{"another name", []FrontendService{asks("n/a", 1, called("mine"))}, []lb.PrivateLinkService{made("n/a")}, ActionDelete, "mine replaces pls-aaaa"},
		{"another name, and somebody is connected", []FrontendService{asks("n/a", 1, called("mine"))}, []lb.PrivateLinkService{made("n/a", connected("pe"))}, ActionReject, "(1 approved)"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			step := NextStep(frontend(), ResolveOwner(frontend(), settings(), tt.sharers, tt.seen), tt.seen, nil, settings())
			if step.Action != tt.do || !strings.Contains(step.Reason, tt.reason) || step.Reason == "" && (step.IsWrite() || step.Action == ActionWait || step.Action == ActionReject) {
				t.Errorf("%s: %s", step.Action, step.Reason)
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
		asks   FrontendService
		seen   []lb.PrivateLinkService
		change func(*lb.Subnet, *Settings)
		do     Action
		reason string
	}{
		{"it is open", asks("n/a", 1), nil, func(s *lb.Subnet, _ *Settings) { s.LinkPolicies = false }, ActionCreate, ""},
		{"it may be opened", asks("n/a", 1), nil, func(_ *lb.Subnet, set *Settings) { set.CanOpenSubnets = true }, ActionOpenSubnet, "subnet nodes"},
		{"Azure is at it", asks("n/a", 1), nil, func(s *lb.Subnet, set *Settings) { s.Provisioning, set.CanOpenSubnets = lb.Updating, true }, ActionWait, "subnet nodes"},
		{"people have to", asks("n/a", 1), nil, func(*lb.Subnet, *Settings) {}, ActionReject, "az network vnet subnet update --subscription s --resource-group net --vnet-name v --name nodes --private-link-service-network-policies Disabled"},
		{"it is in there already", asks("n/a", 1, count(2)), []lb.PrivateLinkService{made("n/a")}, func(*lb.Subnet, *Settings) {}, ActionUpdate, ""},
		{"an address of another range", asks("n/a", 1, fixed("10.1.0.7")), nil, func(s *lb.Subnet, _ *Settings) { s.LinkPolicies = false }, ActionReject, "10.1.0.7, which is not of subnet nodes"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			subnet, set := closed, settings()
			tt.change(&subnet, &set)
			v := ResolveOwner(frontend(), set, []FrontendService{tt.asks}, tt.seen)
			if at := RequiredSubnet(v, tt.seen); !strings.EqualFold(at, closed.String()) {
				t.Errorf("read %q", at)
			}
			step := NextStep(frontend(), v, tt.seen, &subnet, set)
			if step.Action != tt.do || !strings.Contains(step.Reason, tt.reason) {
				t.Errorf("%s: %s", step.Action, step.Reason)
			}
			if step.Action == ActionOpenSubnet && (step.Subnet.LinkPolicies || step.Subnet.Etag != "1") {
				t.Errorf("%+v", step.Subnet)
			}
		})
	}
	v := ResolveOwner(frontend(), settings(), []FrontendService{asks("n/a", 1)}, []lb.PrivateLinkService{made("n/a")})
	if at := RequiredSubnet(v, []lb.PrivateLinkService{made("n/a")}); at != "" {
		t.Errorf("nothing changes, and %s is read", at)
	}
}

// A change keeps properties that Weir does not set and the names that consumers use.
func TestAChangeKeepsTheRest(t *testing.T) {
	t.Parallel()
	link := made("n/gone", connected("pe"), tagged("team", "net"), tagged(service.TagLinkOwnerBefore, "n/gone"))
	link.Origin, link.NAT[0].Name, link.NAT[0].Address = "as read", "pls-aaaa-nodes-dynamic-0", addr("10.0.0.200")
	seen := []lb.PrivateLinkService{link}
	step := NextStep(frontend(), ResolveOwner(frontend(), settings(), []FrontendService{asks("n/a", 1, count(2))}, seen), seen, nil, settings())
	next := step.Service
	if step.Action != ActionUpdate || next.Origin != "as read" || next.Etag != "1" || next.Alias != link.Alias || len(next.Connections) != 1 {
		t.Fatalf("%+v", step)
	}
	if next.Tags["team"] != "net" || OwnerOf(next) != "n/a" || lb.TagValue(next.Tags, service.TagLinkOwnerBefore) != "" {
		t.Errorf("tagged %v", next.Tags)
	}
	if next.NAT[0] != link.NAT[0] || len(next.NAT) != 2 || next.NAT[1].Primary {
		t.Errorf("addresses %+v", next.NAT)
	}
	if OwnerOf(link) != "n/gone" || len(link.NAT) != 1 {
		t.Error("what was read was changed")
	}
}

// A frontend is held by everything that publishes it, whoever created it.
func TestFrontendUsers(t *testing.T) {
	t.Parallel()
	seen := []lb.PrivateLinkService{made("n/a", connected("pe")), made("n/a", foreignOne, as("other")), made("n/b", as("b"), onFrontend(frontendB))}
	text := DescribePublishers(frontend(), seen)
	if !strings.Contains(text, "/other publishes frontend aaaa (no connections)") || !strings.Contains(text, "/pls-aaaa publishes frontend aaaa (1 approved)") || strings.Contains(text, "bbbb") {
		t.Errorf("%q", text)
	}
	if text := DescribePublishers(frontend(), seen[2:]); text != "" {
		t.Errorf("%q", text)
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	p := made("n/a", connected("a", "b", "c", "d"))
	p.Connections[0].Status, p.Connections[1].Status, p.Connections[2].Status = lb.ConnectionPending, lb.ConnectionRejected, "Disconnected"
	if got := CountConnections(p).String(); got != "1 approved, 1 pending, 1 rejected, 1 in other states" {
		t.Error(got)
	}
}
