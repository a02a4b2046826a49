// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

const (
	linkID    = group + "/privateLinkServices/pls"
	openID    = vnetID + "/subnets/open"
	published = group + "/loadBalancers/published"
	consumer  = "11111111-1111-1111-1111-111111111111"
	endpoint  = "/subscriptions/" + consumer + "/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe"
)

// privateLinkBody references the frontend f of a load balancer.
func privateLinkBody(balancer, more string, addresses ...string) string {
	if addresses == nil {
		addresses = []string{natIPConfig("a", openID)}
	}
	return fmt.Sprintf(`{"location":"eastus","properties":{%s"loadBalancerFrontendIpConfigurations":[{"id":"%s/loadBalancers/%s/frontendIPConfigurations/f"}],"ipConfigurations":[%s]}}`,
		more, group, balancer, strings.Join(addresses, ","))
}

func natIPConfig(name, subnet string) string {
	return `{"name":"` + name + `","properties":{"subnet":{"id":"` + subnet + `"}}}`
}

// withPrivateLink adds the subnets open, which allows private link services, and spare; the load balancers
// published and free (Standard, a frontend f in a subnet), old (Basic), six (with an IPv6
// frontend), ips (with a pool of addresses); and pls, which references the first.
func withPrivateLink(t *testing.T, emu *armemu.Emulator) {
	t.Helper()
	putResource(t, emu, openID, `{"properties":{"addressPrefix":"10.7.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}}`)
	putResource(t, emu, vnetID+"/subnets/spare", `{"properties":{"addressPrefix":"10.8.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}}`)
	f := privateFrontend("f", openID, "")
	six := `{"name":"six","properties":{"subnet":{"id":"` + openID + `"},"privateIPAddressVersion":"IPv6"}}`
	for name, body := range map[string]string{
		"published": lb("Standard", `"frontendIPConfigurations":[`+f+`],"backendAddressPools":[{"name":"p"}]`),
		"free":      lb("Standard", `"frontendIPConfigurations":[`+f+`],"backendAddressPools":[{"name":"p"}]`),
		"old":       lb("Basic", `"frontendIPConfigurations":[`+f+`]`),
		"six":       lb("Standard", `"frontendIPConfigurations":[`+f+`,`+six+`]`),
		"ips":       lb("Standard", `"frontendIPConfigurations":[`+f+`],"backendAddressPools":[{"name":"p","properties":{"loadBalancerBackendAddresses":[{"name":"a","properties":{"ipAddress":"10.0.0.4"}}]}}]`),
	} {
		putResource(t, emu, group+"/loadBalancers/"+name, body)
	}
	putResource(t, emu, linkID, privateLinkBody("published", `"visibility":{"subscriptions":["*"]},`))
}

func withConnection(t *testing.T, emu *armemu.Emulator) {
	t.Helper()
	withPrivateLink(t, emu)
	putResource(t, emu, linkID+"/privateEndpointConnections/pe", `{"properties":{"privateEndpoint":{"id":"`+endpoint+`"},"privateLinkServiceConnectionState":{"status":"Pending"}}}`)
	putResource(t, emu, group+"/privateLinkServices/spare", privateLinkBody("published", ""))
}

func privateLinkViolations() []ruleViolation {
	fresh := group + "/privateLinkServices/new"
	seven := func(t *testing.T, emu *armemu.Emulator) {
		withPrivateLink(t, emu)
		for i := range 7 {
			putResource(t, emu, fmt.Sprintf("%s%d", linkID, i), privateLinkBody("published", ""))
		}
	}
	var nine []string
	for i := range 9 {
		nine = append(nine, natIPConfig(fmt.Sprintf("n%d", i), openID))
	}
	approved := func(visible string) string {
		return privateLinkBody("free", `"visibility":{"subscriptions":["`+visible+`"]},"autoApproval":{"subscriptions":["`+consumer+`"]},`)
	}
	status := func(s string) string {
		return `{"properties":{"privateLinkServiceConnectionState":{"status":"` + s + `"}}}`
	}
	oneOf := poolBody("10.0.0.4")
	pe := linkID + "/privateEndpointConnections/pe"
	frontends := func(list string) string {
		return lb("Standard", `"frontendIPConfigurations":[`+list+`],"backendAddressPools":[{"name":"p"}]`)
	}
	cases := []ruleViolation{
		{rule: "private-link-frontends-exist", id: fresh, bad: privateLinkBody("none", ""), good: privateLinkBody("free", ""), message: "loadBalancers/none"},
		{rule: "private-link-frontends-exist", id: fresh, bad: strings.Replace(privateLinkBody("free", ""), "/f\"", "/g\"", 1), good: privateLinkBody("free", ""), message: "frontendIPConfigurations/g"},
		{rule: "private-link-standard", id: fresh, bad: privateLinkBody("old", ""), good: privateLinkBody("free", ""), message: "loadBalancers/old"},
		{rule: "private-link-ipv4", id: fresh, bad: privateLinkBody("six", ""), good: privateLinkBody("free", ""), message: "frontend six"},
		{rule: "private-link-no-address-pools", id: fresh, bad: privateLinkBody("ips", ""), good: privateLinkBody("free", ""), message: "loadBalancers/ips"},
		{rule: "pool-behind-private-link", id: published + "/backendAddressPools/p", bad: oneOf, goodID: group + "/loadBalancers/free/backendAddressPools/p", good: oneOf, message: "privateLinkServices/pls"},
		{rule: "private-link-addresses", id: fresh, bad: privateLinkBody("free", "", nine...), good: privateLinkBody("free", "", nine[:8]...), message: "9 IP"},
		{rule: "private-link-addresses", id: fresh, bad: privateLinkBody("free", "", ""), good: privateLinkBody("free", ""), message: "0 IP"},
		{rule: "private-link-limit", prepare: seven, id: fresh, bad: privateLinkBody("published", ""), good: privateLinkBody("free", ""), message: "has 8 private link services"},
		{rule: "private-link-limit", prepare: seven, id: fresh, bad: privateLinkBody("published", ""), goodID: linkID, good: privateLinkBody("published", `"fqdns":["a.b"],`), message: "published"},
		{rule: "private-link-subnet-policies", id: fresh, bad: privateLinkBody("free", "", natIPConfig("a", nodesID)), good: privateLinkBody("free", ""), message: "subnets/nodes"},
		{rule: "subnet-policies-stay-off", id: openID, bad: `{"properties":{"addressPrefix":"10.7.0.0/24"}}`, good: `{"properties":{"addressPrefix":"10.7.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}}`, message: "privateLinkServices/pls"},
		{rule: "subnet-policies-stay-off", id: openID, bad: `{"properties":{"addressPrefix":"10.7.0.0/24","privateLinkServiceNetworkPolicies":"Enabled"}}`, goodID: vnetID + "/subnets/spare", good: `{"properties":{"addressPrefix":"10.8.0.0/24","privateLinkServiceNetworkPolicies":"Enabled"}}`, message: "subnets/open"},
		{rule: "private-link-approval-visible", id: fresh, bad: approved(subscription), good: approved(consumer), message: consumer},
		{rule: "private-link-approval-visible", id: fresh, bad: approved(subscription), good: approved("*"), message: consumer},
		{rule: "connection-exists", prepare: withConnection, id: pe + "2", bad: status("Approved"), goodID: pe, good: status("Approved"), message: "pe2"},
		{rule: "connection-state", prepare: withConnection, id: pe, bad: status("Pending"), good: status("Rejected"), message: "Pending"},
		{rule: "published-frontends-stay", id: published, bad: frontends(privateFrontend("g", openID, "")), good: frontends(privateFrontend("f", openID, "")), message: "privateLinkServices/pls"},
		{rule: "load-balancer-without-private-link", method: http.MethodDelete, id: published, goodID: group + "/loadBalancers/free", message: "privateLinkServices/pls"},
		{rule: "private-link-without-connections", prepare: withConnection, method: http.MethodDelete, id: linkID, goodID: group + "/privateLinkServices/spare", message: "1 private endpoint connections"},
	}
	for i := range cases {
		if cases[i].prepare == nil {
			cases[i].prepare = withPrivateLink
		}
	}
	return cases
}

// As recorded.
func TestPrivateLinkService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true})
		withPrivateLink(t, emu)
		id := group + "/privateLinkServices/new"
		before := sendRequest(t, emu, http.MethodGet, group+"/loadBalancers/free", "").stringField("etag")
		body := privateLinkBody("free", `"visibility":{"subscriptions":["`+consumer+`"]},"alias":"mine","privateEndpointConnections":[{"name":"x"}],`)
		a := sendRequest(t, emu, http.MethodPut, id, body)
		if a.status != http.StatusCreated || a.provisioningState() != "Updating" || a.header.Get("Retry-After") != "10" || a.header.Get("Azure-AsyncOperation") == "" || strings.Contains(a.raw, "azure.privatelinkservice") {
			t.Fatalf("%d %s", a.status, a.raw)
		}
		if after := sendRequest(t, emu, http.MethodGet, group+"/loadBalancers/free", "").stringField("etag"); after == before {
			t.Error("the load balancer's etag stayed")
		}
		if _, err := emu.Connect(id, endpoint); err == nil {
			t.Error("connected while it is made")
		}
		time.Sleep(10 * time.Second)
		a = sendRequest(t, emu, http.MethodGet, id, "")
		for _, shown := range []string{`"alias":"new.`, `.eastus.azure.privatelinkservice"`, `"networkInterfaces":[{"id":"` + group + `/networkInterfaces/new.nic.`, `"privateEndpointConnections":[]`, `"fqdns":[]`, `"enableProxyProtocol":false`, `"privateIPAddress":"10.7.0.`, `"resourceGuid"`} {
			if !strings.Contains(a.raw, shown) {
				t.Errorf("no %s in %s", shown, a.raw)
			}
		}
		if second := sendRequest(t, emu, http.MethodPut, id, body); second.status != http.StatusOK || second.provisioningState() != "Succeeded" {
			t.Errorf("the same again: %d %s", second.status, second.raw)
		}

		connection, err := emu.Connect(id, endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if c := sendRequest(t, emu, http.MethodGet, connection, ""); !strings.Contains(c.raw, `"status":"Pending"`) || !strings.Contains(c.raw, endpoint) || !strings.Contains(c.raw, "linkIdentifier") {
			t.Errorf("%s", c.raw)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, connection, `{"properties":{"privateLinkServiceConnectionState":{"status":"Approved","description":"fine"}}}`))
		time.Sleep(time.Minute)
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, id, strings.Replace(body, `"visibility"`, `"autoApproval":{"subscriptions":["`+consumer+`"]},"visibility"`, 1)))
		time.Sleep(time.Minute)
		second, err := emu.Connect(id, endpoint+"2")
		if err != nil {
			t.Fatal(err)
		}
		whole := sendRequest(t, emu, http.MethodGet, id, "")
		for _, shown := range []string{`"description":"fine"`, `"description":"Auto Approved"`, `"alias":"new.`, endpoint + `"`} {
			if !strings.Contains(whole.raw, shown) {
				t.Errorf("no %s in %s", shown, whole.raw)
			}
		}
		if all := sendRequest(t, emu, http.MethodGet, id+"/privateEndpointConnections", ""); strings.Count(all.raw, `"status":"Approved"`) != 2 {
			t.Errorf("%s", all.raw)
		}
		for _, c := range []string{connection, second} {
			if a := sendRequest(t, emu, http.MethodDelete, c, ""); a.status != http.StatusAccepted {
				t.Errorf("%d %s", a.status, a.raw)
			}
			if a := sendRequest(t, emu, http.MethodGet, c, ""); a.provisioningState() != "Deleting" {
				t.Errorf("%s", a.raw)
			}
			time.Sleep(time.Minute)
		}
		if a := sendRequest(t, emu, http.MethodDelete, id, ""); a.status != http.StatusAccepted {
			t.Errorf("%d %s", a.status, a.raw)
		}
		time.Sleep(time.Minute)
		if a := sendRequest(t, emu, http.MethodGet, id, ""); a.status != http.StatusNotFound || a.errorCode() != "ResourceNotFound" {
			t.Errorf("%d %s", a.status, a.raw)
		}
		if a := sendRequest(t, emu, http.MethodDelete, group+"/loadBalancers/free", ""); a.status != http.StatusAccepted {
			t.Errorf("%d %s", a.status, a.raw)
		}
	})
}

func TestConnections(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withPrivateLink(t, emu)
	putResource(t, emu, group+"/privateLinkServices/hidden", privateLinkBody("free", ""))
	own := strings.Replace(endpoint, consumer, subscription, 1)
	for _, tt := range []struct{ service, endpoint, want string }{
		{linkID, endpoint, ""},
		{group + "/privateLinkServices/hidden", own, ""},
		{group + "/privateLinkServices/hidden", endpoint, "not visible"},
		{group + "/privateLinkServices/none", endpoint, "no private link service"},
		{lbID, endpoint, "no private link service"},
		{linkID, "pe", "private endpoint"},
	} {
		got, err := emu.Connect(tt.service, tt.endpoint)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && !strings.HasPrefix(got, tt.service+"/privateEndpointConnections/pe.") {
			t.Errorf("%s: %q, %v", tt.service, got, err)
		}
	}
	snapshot := emu.Snapshot()
	if err := emu.Restore(snapshot); err != nil || string(emu.Snapshot()) != string(snapshot) {
		t.Errorf("restored otherwise: %v", err)
	}
	for body, want := range map[string]int{
		`{"service":"` + linkID + `","endpoint":"` + endpoint + `3"}`: 200,
		`{"service":"` + linkID + `"}`:                                400,
		`{"service":"` + linkID + `","endpoint":"x","more":1}`:        400,
	} {
		if got := sendAdmin(emu, http.MethodPost, "/_emu/connections", body); got.Code != want {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
}
