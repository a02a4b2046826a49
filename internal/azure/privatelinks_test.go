// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

const (
	mine                = groupPrivateLinks + "privateLinkServices/mine"
	networkPrivateLinks = groupPrivateLinks + "virtualNetworks/v"
	nodes               = networkPrivateLinks + "/subnets/nodes"
	frontendA           = groupPrivateLinks + "loadBalancers/kubernetes/frontendIPConfigurations/aaaa"
	bluePrivateLinks    = "11111111-1111-1111-1111-11111111111a"
)

var (
	idOfMine    = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypePrivateLinkService, Name: "mine"}
	idOfNetwork = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeVirtualNetwork, Name: "v"}
	set         = desired.Settings{ClusterName: "k8s", Group: lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg"}, VirtualNetwork: networkPrivateLinks, CanOpenSubnets: true}
	frontend    = desired.Frontend{ID: frontendA, Name: "aaaa", Family: lb.IPv4, LoadBalancer: desired.LoadBalancer{Location: "eastus", SKU: lb.Standard}}
)

func newSharers(changes ...func(*service.PrivateLink)) []desired.FrontendService {
	l := &service.PrivateLink{Name: "mine", Subnet: "nodes", Count: 1}
	for _, change := range changes {
		change(l)
	}
	return []desired.FrontendService{{Service: "shop/web", Link: l}}
}

// The life of a service: open the subnet, create, change, connect, delete; each step is one write,
// and in the end nothing is left to do.
func TestLifeOfAPrivateLinkService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testALife)
}

func testALife(t *testing.T) {
	a, client := servePrivateLinks(t)
	a.addResource(t, nodes, `{"properties":{"addressPrefix":"10.0.0.0/24","privateLinkServiceNetworkPolicies":"Enabled","future":7,"natGateway":{"id":"/nat"},"ipConfigurations":[{"id":"/x"}]}}`)
	inSync := func(sharers []desired.FrontendService) string {
		t.Helper()
		a.takeRequests()
		for range 10 {
			seen, err := client.List(t.Context(), "s1", "rg")
			if err != nil {
				t.Fatal(err)
			}
			v := desired.ResolveOwner(frontend, set, sharers, seen)
			var subnet *lb.Subnet
			if desired.RequiredSubnet(v, seen) != "" {
				s, err := client.GetSubnet(t.Context(), idOfNetwork, "nodes")
				if err != nil {
					t.Fatal(err)
				}
				subnet = &s
			}
			switch step := desired.NextStep(frontend, v, seen, subnet, set); step.Action {
			case desired.ActionInSync:
				var writes []string
				for call := range strings.SplitSeq(a.takeRequests(), "\n") {
					if !strings.HasPrefix(call, "GET ") {
						writes = append(writes, call)
					}
				}
				return strings.Join(writes, "\n")
			case desired.ActionOpenSubnet:
				_, err = client.OpenSubnet(t.Context(), step.Subnet)
			case desired.ActionCreate, desired.ActionUpdate:
				_, err = client.Put(t.Context(), step.Service)
			case desired.ActionDisconnect:
				err = client.DeleteConnection(t.Context(), step.Service.ID, step.Connection)
			case desired.ActionDelete:
				err = client.Delete(t.Context(), step.Service)
			default:
				t.Fatalf("%s: %s", step.Action, step.Reason)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Fatal("no end")
		return ""
	}

	if got := inSync(newSharers()); got != "PUT virtualNetworks/v/subnets/nodes\nPUT privateLinkServices/mine" {
		t.Errorf("to make it\n%s", got)
	}
	text, _ := json.Marshal(a.of[strings.ToLower(nodes)])
	for _, kept := range []string{`"future":7`, `"natGateway":{"id":"/nat"}`, `"privateLinkServiceNetworkPolicies":"Disabled"`} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("the subnet lacks %s: %s", kept, text)
		}
	}
	if strings.Contains(a.bodies[0], "ipConfigurations") {
		t.Errorf("the subnet was written as %s", a.bodies[0])
	}
	want := `{"location":"eastus","properties":{"enableProxyProtocol":false,"fqdns":[],"ipConfigurations":[{"name":"dynamic-0","properties":{"primary":true,"privateIPAddressVersion":"IPv4","privateIPAllocationMethod":"Dynamic","subnet":{"id":"` + nodes + `"}}}],"loadBalancerFrontendIpConfigurations":[{"id":"` + frontendA + `"}]},"tags":{"k8s-azure-cluster-name":"k8s","k8s-azure-owner-service":"shop/web"}}`
	if a.bodies[1] != want {
		t.Errorf("made as\n%s, want\n%s", a.bodies[1], want)
	}
	if got := inSync(newSharers()); got != "" {
		t.Errorf("in sync, and then\n%s", got)
	}

	a.of[strings.ToLower(mine)]["future"] = 8.0
	a.addResource(t, mine+"/privateEndpointConnections/pe2.guid", `{"properties":{"privateEndpoint":{"id":"/pe2"},"privateLinkServiceConnectionState":{"status":"Approved","description":"Auto Approved"}}}`)
	a.addResource(t, mine+"/privateEndpointConnections/pe1.guid", `{"properties":{"privateEndpoint":{"id":"/pe1"},"privateLinkServiceConnectionState":{"status":"Pending"}}}`)
	more := func(l *service.PrivateLink) {
		l.Count, l.Addresses, l.FQDNs, l.ProxyProtocol = 2, []netip.Addr{netip.MustParseAddr("10.0.0.7")}, []string{"web.example.com"}, true
		l.Visibility, l.AutoApproval = []string{bluePrivateLinks}, []string{bluePrivateLinks}
	}
	if got := inSync(newSharers(more)); got != "PUT privateLinkServices/mine" {
		t.Errorf("to change it\n%s", got)
	}
	body := a.bodies[len(a.bodies)-1]
	for _, output := range []string{`"future":8`, `"privateIPAddress":"10.0.0.7"`, `"visibility":{"subscriptions":["` + bluePrivateLinks + `"]}`, `"autoApproval":{"subscriptions":["` + bluePrivateLinks + `"]}`, `"fqdns":["web.example.com"]`, `"enableProxyProtocol":true`, `{"name":"dynamic-0"`} {
		if !strings.Contains(body, output) {
			t.Errorf("no %s in %s", output, body)
		}
	}
	for _, never := range []string{"alias", "privateEndpointConnections", "etag", "provisioningState"} {
		if strings.Contains(body, never) {
			t.Errorf("%s in %s", never, body)
		}
	}
	read, err := client.Get(t.Context(), idOfMine)
	if err != nil {
		t.Fatal(err)
	}
	if c := desired.CountConnections(read); c != (desired.Count{Pending: 1, Approved: 1}) || read.Alias == "" || read.Connections[1].Description != "Auto Approved" || read.Connections[1].Endpoint != "/pe2" {
		t.Errorf("%+v", read)
	}

	if got := inSync(newSharers()); got != "PUT privateLinkServices/mine" || !strings.Contains(a.bodies[len(a.bodies)-1], `"visibility":{"subscriptions":[]}`) {
		t.Errorf("to take it back\n%s\n%s", got, a.bodies[len(a.bodies)-1])
	}
	if got := inSync(nil); got != "DELETE privateLinkServices/mine/privateEndpointConnections/pe1.guid\nDELETE privateLinkServices/mine/privateEndpointConnections/pe2.guid\nDELETE privateLinkServices/mine" {
		t.Errorf("to remove it\n%s", got)
	}
}

// A concurrent write leads to 412, also for a creation; deleting a missing service succeeds.
func TestOvertakenPrivateLinks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testOvertaken)
}

func testOvertaken(t *testing.T) {
	a, client := servePrivateLinks(t)
	a.addResource(t, nodes, `{"properties":{"addressPrefixes":["10.0.0.0/24"]}}`)
	a.addResource(t, mine, `{"location":"eastus","properties":{"ipConfigurations":[]}}`)
	a.addResource(t, mine+"/privateEndpointConnections/pe.guid", `{"properties":{}}`)
	read, err := client.Get(t.Context(), idOfMine)
	if err != nil {
		t.Fatal(err)
	}
	subnet, err := client.GetSubnet(t.Context(), idOfNetwork, "nodes")
	if err != nil || !subnet.LinkPolicies {
		t.Fatalf("%+v, %v", subnet, err)
	}
	a.changeEtag(strings.ToLower(mine))
	a.changeEtag(strings.ToLower(nodes))
	gone := idOfMine
	gone.Name = "gone"
	for name, call := range map[string]func() error{
		"a change":     func() error { _, err := client.Put(t.Context(), read); return err },
		"a deletion":   func() error { return client.Delete(t.Context(), read) },
		"a connection": func() error { return client.DeleteConnection(t.Context(), idOfMine, read.Connections[0]) },
		"a subnet":     func() error { _, err := client.OpenSubnet(t.Context(), subnet); return err },
		"a creation": func() error {
			_, err := client.Put(t.Context(), lb.PrivateLinkService{ID: idOfMine, Location: "eastus"})
			return err
		},
	} {
		if f := armerror.FromError(call()); !f.IsPreconditionFailed() {
			t.Errorf("%s: %v", name, f)
		}
	}
	bare := read.Connections[0]
	bare.Etag = "" // as in a list
	if err := client.DeleteConnection(t.Context(), idOfMine, bare); err != nil {
		t.Error(err)
	}
	if err := client.DeleteConnection(t.Context(), idOfMine, bare); err != nil {
		t.Errorf("twice: %v", err)
	}
	read, _ = client.Get(t.Context(), idOfMine)
	for range 2 {
		if err := client.Delete(t.Context(), read); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.Get(t.Context(), gone); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Stale {
		t.Errorf("gone: %v", err)
	}
}

// Invalid names and writes without a read are not sent.
func TestRefusedPrivateLinks(t *testing.T) {
	t.Parallel()
	a, client := servePrivateLinks(t)
	unread := lb.PrivateLinkService{ID: idOfMine, Etag: "e"}
	for name, tt := range map[string]struct {
		code string
		call func() error
	}{
		"a write of what was not read":    {"NotRead", func() error { _, err := client.Put(t.Context(), unread); return err }},
		"a deletion of what was not read": {"NotRead", func() error { return client.Delete(t.Context(), unread) }},
		"a subnet that was not read": {"NotRead", func() error {
			_, err := client.OpenSubnet(t.Context(), lb.Subnet{Network: idOfNetwork, Name: "nodes", Etag: "e"})
			return err
		}},
		"a subnet that is a path": {"InvalidID", func() error { _, err := client.GetSubnet(t.Context(), idOfNetwork, "nodes/../x"); return err }},
		"a subnet without a name": {"InvalidID", func() error { _, err := client.GetSubnet(t.Context(), idOfNetwork, ""); return err }},
		"a connection that is a path": {"InvalidID", func() error {
			return client.DeleteConnection(t.Context(), idOfMine, lb.PrivateEndpointConnection{Name: "../y", Etag: "e"})
		}},
		"a connection without a name": {"InvalidID", func() error {
			return client.DeleteConnection(t.Context(), idOfMine, lb.PrivateEndpointConnection{Etag: "e"})
		}},
		"a service of which Azure is silent": {"NoEtag", func() error {
			p := unread
			p.Etag, p.Origin = "", codec.Document{Version: "2025-05-01", Text: json.RawMessage(`{"id":"` + mine + `"}`)}
			_, err := client.Put(t.Context(), p)
			return err
		}},
	} {
		if f := armerror.FromError(tt.call()); f == nil || f.Code != tt.code {
			t.Errorf("%s: got %v", name, f)
		}
	}
	if calls := a.takeRequests(); calls != "" {
		t.Errorf("asked\n%s", calls)
	}
}

// A list with an unexpected item is rejected as a whole.
func TestListWithOtherTypes(t *testing.T) {
	t.Parallel()
	a, client := servePrivateLinks(t)
	a.addResource(t, mine, `{"location":"eastus","tags":{"a":"b"},"properties":{"loadBalancerFrontendIpConfigurations":[{"id":"`+frontendA+`"}],"ipConfigurations":[{"name":"n","properties":{"subnet":{"id":"`+nodes+`"},"primary":true,"privateIPAllocationMethod":"static","privateIPAddress":"10.0.0.7"}}]}}`)
	links, err := client.List(t.Context(), "s1", "rg")
	if err != nil || len(links) != 1 {
		t.Fatal(links, err)
	}
	want := []lb.NATAddress{{Name: "n", Subnet: nodes, Address: netip.MustParseAddr("10.0.0.7"), Static: true, Primary: true}}
	if diff := cmp.Diff(want, links[0].NAT, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || links[0].Tags["a"] != "b" || links[0].Frontends[0] != frontendA {
		t.Errorf("%+v", links[0])
	}
	a.of[strings.ToLower(mine)+"2"] = object{"id": groupPrivateLinks + "privateLinkServices/m2", "properties": object{"fqdns": "x"}}
	if _, err := client.List(t.Context(), "s1", "rg"); armerror.FromError(err) == nil || armerror.FromError(err).Code != armerror.CodeOutcomeUnknown {
		t.Errorf("got %v", err)
	}
}
