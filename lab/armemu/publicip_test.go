// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

func readProperty(t testing.TB, emu *armemu.Emulator, id string, path ...string) string {
	t.Helper()
	raw, ok := emu.Get(id)
	if !ok {
		t.Fatalf("%s does not exist", id)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	for _, key := range append([]string{"properties"}, path[:len(path)-1]...) {
		body, _ = body[key].(map[string]any)
	}
	s, _ := body[path[len(path)-1]].(string)
	return s
}

func expectAccepted(t *testing.T, a rawResponse) {
	t.Helper()
	if a.status >= 300 {
		t.Errorf("refused: %d %.400s", a.status, a.raw)
	}
}

func expectRejected(t *testing.T, a rawResponse, status int, code string) {
	t.Helper()
	if a.status != status || !strings.Contains(a.raw, `"code":"`+code+`"`) {
		t.Errorf("got %d %.400s, want %d %s", a.status, a.raw, status, code)
	}
}

func TestLifeOfAPublicIP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true, Behavior: worlds.BatchedWrites()})
		clients := newClients(t, emu.Transport(), "http://emulator.test")
		ips := clients.NewPublicIPAddressesClient()
		want := armnetwork.PublicIPAddress{
			Location: new("eastus"), Zones: []*string{new("1"), new("2")},
			SKU: &armnetwork.PublicIPAddressSKU{Name: new(armnetwork.PublicIPAddressSKUNameStandard)},
			Properties: &armnetwork.PublicIPAddressPropertiesFormat{
				PublicIPAllocationMethod: new(armnetwork.IPAllocationMethodStatic),
				DNSSettings:              &armnetwork.PublicIPAddressDNSSettings{DomainNameLabel: new("shop")},
			},
		}
		create := func() armnetwork.PublicIPAddress {
			poller, err := ips.BeginCreateOrUpdate(t.Context(), "rg", "a", want, nil)
			if err != nil {
				t.Fatal(err)
			}
			if ip := readProperty(t, emu, pips+"a", "ipAddress"); ip != "" {
				t.Errorf("the address %s shows before the creation is done", ip)
			}
			early := sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(publicFrontend("fe", "a")))
			expectRejected(t, early, http.StatusTooManyRequests, "ReferencedResourceNotProvisioned")
			done, err := poller.PollUntilDone(t.Context(), &runtime.PollUntilDoneOptions{Frequency: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			return done.PublicIPAddress
		}
		made := create()
		if *made.Properties.IPAddress != "198.18.0.1" || *made.Properties.DNSSettings.Fqdn != "shop.eastus.cloudapp.azure.com" || made.Properties.IPConfiguration != nil {
			t.Errorf("made: %s, %s, %v", *made.Properties.IPAddress, *made.Properties.DNSSettings.Fqdn, made.Properties.IPConfiguration)
		}

		expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withMember(withFrontends(publicFrontend("fe", "A")))))
		time.Sleep(time.Minute)
		if by := readProperty(t, emu, pips+"a", "ipConfiguration", "id"); by != otherLB+"/frontendIPConfigurations/fe" {
			t.Errorf("used by %q", by)
		}
		_, err := ips.BeginDelete(t.Context(), "rg", "a", nil)
		wantError(t, err, http.StatusBadRequest, "PublicIPAddressCannotBeDeleted")

		// Until the releasing write is done, the public IP is in use.
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withMember(withFrontends(privateFrontend("in", nodesID, "")))))
		expectRejected(t, sendRequest(t, emu, http.MethodDelete, pips+"a", ""), 400, "PublicIPAddressCannotBeDeleted")
		time.Sleep(time.Minute)
		if by := readProperty(t, emu, pips+"a", "ipConfiguration", "id"); by != "" {
			t.Errorf("still used by %q", by)
		}

		etag := sendRequest(t, emu, http.MethodGet, pips+"a", "").stringField("etag")
		if etag == *made.Etag {
			t.Error("it was associated and freed, and shows the etag of its creation")
		}
		made.Tags = map[string]*string{"k": new("v")}
		body, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", string(body), "If-Match", etag))
		expectRejected(t, sendRequest(t, emu, http.MethodPut, pips+"a", string(body), "If-Match", etag), 412, "PreconditionFailed")
		time.Sleep(time.Minute)
		page, err := ips.NewListPager("rg", nil).NextPage(t.Context())
		if err != nil || len(page.Value) != 1 || *page.Value[0].Properties.IPAddress != "198.18.0.1" || *page.Value[0].Tags["k"] != "v" {
			t.Errorf("the list shows %v, %v", page.Value, err)
		}

		gone, err := ips.BeginDelete(t.Context(), "rg", "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gone.PollUntilDone(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if second := create(); *second.Properties.IPAddress != "198.18.0.2" {
			t.Errorf("the second one has the address %s", *second.Properties.IPAddress)
		}
	})
}

// Writes of a load balancer with a member take time.
func withMember(balancer string) string {
	pool := strings.Replace(poolBody("10.0.0.9"), "{", `{"name":"p",`, 1)
	return strings.Replace(balancer, `"frontendIPConfigurations"`, `"backendAddressPools":[`+pool+`],"frontendIPConfigurations"`, 1)
}

// The next PUT repairs it.
func TestFailedPublicIP(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	setFaults(t, emu, `rules: [{match: {method: PUT, path: "publicIPAddresses/*", nth: 1}, action: {operation: {fail: {code: InternalServerError, message: m}}}}]`)
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static)))
	if ip, state := readProperty(t, emu, pips+"a", "ipAddress"), readProperty(t, emu, pips+"a", "provisioningState"); ip != "" || state != "Failed" {
		t.Errorf("%q, %s", ip, state)
	}
	expectRejected(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(publicFrontend("fe", "a"))), 429, "ReferencedResourceNotProvisioned")
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static)))
	if ip := readProperty(t, emu, pips+"a", "ipAddress"); ip != "198.18.0.2" {
		t.Errorf("after the second PUT: %q", ip)
	}
}

func TestFailedWriteKeepsItsPublicIP(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withAddresses(t, emu)
	user := group + "/loadBalancers/user"
	setFaults(t, emu, `rules: [{match: {path: loadBalancers/user}, action: {operation: {fail: {code: InternalServerError, message: m}}}}]`)
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, user, withFrontends(publicFrontend("fe", "a"))))
	expectRejected(t, sendRequest(t, emu, http.MethodDelete, pips+"used", ""), 400, "PublicIPAddressCannotBeDeleted")
	expectAccepted(t, sendRequest(t, emu, http.MethodDelete, pips+"a", ""))
}

func TestPrefixesGiveAddresses(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	for name, length := range map[string]string{"four": "124", "six": "127"} {
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, pipRanges+name, lb("Standard", `"publicIPAddressVersion":"IPv6","prefixLength":`+length)))
	}
	for _, p := range []struct{ name, length string }{{"small", "31"}, {"big", "28"}, {"next", "31"}} {
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, pipRanges+p.name, lb("Standard", `"prefixLength":`+p.length)))
	}
	var ranges []netip.Prefix
	for _, name := range []string{"small", "big", "next", "four", "six"} {
		p, err := netip.ParsePrefix(readProperty(t, emu, pipRanges+name, "ipPrefix"))
		if err != nil || p.Masked() != p {
			t.Fatalf("%s: %v %v", name, p, err)
		}
		for _, other := range ranges {
			if other.Overlaps(p) {
				t.Errorf("%v overlaps %v", p, other)
			}
		}
		ranges = append(ranges, p)
	}
	from := lb("Standard", static+`,"publicIPPrefix":{"id":"`+pipRanges+`small"}`)
	for _, name := range []string{"x", "y"} {
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+name, from))
		if ip := readProperty(t, emu, pips+name, "ipAddress"); !ranges[0].Contains(netip.MustParseAddr(ip)) {
			t.Errorf("%s has %s, which is not in %v", name, ip, ranges[0])
		}
	}
	expectRejected(t, sendRequest(t, emu, http.MethodPut, pips+"z", from), 400, "PublicIpPrefixOutOfIpAddresses")
	back := readProperty(t, emu, pips+"x", "ipAddress")
	expectAccepted(t, sendRequest(t, emu, http.MethodDelete, pips+"x", ""))
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"z", from))
	if ip := readProperty(t, emu, pips+"z", "ipAddress"); ip != back {
		t.Errorf("z has %s, %s is free", ip, back)
	}
	if got := sendRequest(t, emu, http.MethodGet, pipRanges+"small", "").raw; strings.Count(got, "/publicIPAddresses/") != 2 {
		t.Errorf("the prefix shows %s", got)
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"v6", lb("Standard", static+`,"publicIPAddressVersion":"IPv6"`)))
	if ip := readProperty(t, emu, pips+"v6", "ipAddress"); ip != "2001:db8::1" {
		t.Errorf("IPv6: %s", ip)
	}
}

func TestDynamicPublicIP(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	ip := func() string { return readProperty(t, emu, pips+"d", "ipAddress") }
	basic := func(body string) string { return strings.Replace(body, "Standard", "Basic", 1) }
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"d", lb("Basic", "")))
	if ip() != "" {
		t.Errorf("unused, it has %s", ip())
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, basicID, basic(withFrontends(publicFrontend("fe", "d")))))
	first := ip()
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, basicID, basic(withFrontends(publicFrontend("fe", "d")))))
	if first == "" || ip() != first {
		t.Errorf("used, it has %q and then %q", first, ip())
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, basicID, basic(withFrontends())))
	if sendRequest(t, emu, http.MethodGet, basicID, ""); ip() != "" {
		t.Errorf("let go, it has %s", ip())
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, basicID, basic(withFrontends(publicFrontend("fe", "d")))))
	if ip() == first || ip() == "" {
		t.Errorf("used again, it has %q, and had %s before", ip(), first)
	}
	// Static retains the address.
	kept := ip()
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"d", lb("Basic", static)))
	expectAccepted(t, sendRequest(t, emu, http.MethodDelete, basicID, ""))
	if ip() != kept {
		t.Errorf("Static and let go, it has %q instead of %s", ip(), kept)
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"d", lb("Standard", static)))
	if ip() != kept {
		t.Errorf("Standard, it has %q instead of %s", ip(), kept)
	}
}

func TestPublicIPServerProperties(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static+`,"ipAddress":"1.2.3.4","ipConfiguration":{"id":"/x"},"dnsSettings":{"domainNameLabel":"web","fqdn":"forged"}`)))
	if ip, by, name := readProperty(t, emu, pips+"a", "ipAddress"), readProperty(t, emu, pips+"a", "ipConfiguration", "id"), readProperty(t, emu, pips+"a", "dnsSettings", "fqdn"); ip != "198.18.0.1" || by != "" || name != "web.eastus.cloudapp.azure.com" {
		t.Errorf("%s %q %s", ip, by, name)
	}
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static+`,"dnsSettings":{"fqdn":"forged"}`)))
	if name := readProperty(t, emu, pips+"a", "dnsSettings", "fqdn"); name != "" {
		t.Errorf("without a label it has the name %s", name)
	}
}

func TestDefaults(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withAddresses(t, emu)
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static)))
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, loadBalancerWithRules(`"probes":[{"name":"hp","properties":{"protocol":"Tcp","port":80,"probeThreshold":2}}]`,
		`"loadBalancingRules":[`+rule("r", "pub", "p", "Tcp", `"frontendPort":80,"backendPort":80,"enableFloatingIP":true`)+`]`)))
	for id, want := range map[string][]string{
		pips + "a": {`"idleTimeoutInMinutes":4`, `"ipTags":[]`, `"publicIPAddressVersion":"IPv4"`, `"publicIPAllocationMethod":"Static"`},
		otherLB: {
			`"intervalInSeconds":15`, `"probeThreshold":2`, `"enableFloatingIP":true`, `"idleTimeoutInMinutes":4`, `"enableTcpReset":false`,
			`"disableOutboundSnat":false`, `"loadDistribution":"Default"`, `"privateIPAllocationMethod":"Dynamic"`,
		},
	} {
		got := sendRequest(t, emu, http.MethodGet, id, "").raw
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s does not show %s: %s", id, w, got)
			}
		}
	}
}

func TestSeededPublicIPGetsAnAddress(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static)))
	if err := emu.Restore([]byte(`[{"id":"` + pips + `b","body":` + lb("Standard", static) + `}]`)); err != nil {
		t.Fatal(err)
	}
	if ip := readProperty(t, emu, pips+"b", "ipAddress"); ip != "198.18.0.2" {
		t.Errorf("the seeded one has %q", ip)
	}
}

func TestPublicIPsOfAnotherRange(t *testing.T) {
	emu := newCloud(t, armemu.Options{PublicIPv4Range: netip.MustParsePrefix("127.64.0.0/16")})
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static)))
	expectAccepted(t, sendRequest(t, emu, http.MethodDelete, pips+"a", ""))
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"b", lb("Standard", static)))
	if ip := readProperty(t, emu, pips+"b", "ipAddress"); ip != "127.64.0.2" {
		t.Errorf("%q; addresses are not reused", ip)
	}
}
