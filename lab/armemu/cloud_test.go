// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"go.uber.org/goleak"

	"weir.dev/weir/lab/armemu"
)

const (
	subscription = "00000000-0000-0000-0000-000000000000"
	group        = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Network"
	vnetID       = group + "/virtualNetworks/vnet"
	lbID         = group + "/loadBalancers/kubernetes"
	poolID       = lbID + "/backendAddressPools/web"
	version      = "?api-version=2025-05-01"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newCloud has a virtual network and a Standard load balancer with the empty pool web, used by a
// rule, and the unused pool spare.
func newCloud(t testing.TB, opts armemu.Options) *armemu.Emulator {
	t.Helper()
	emu := armemu.New(opts)
	putResource(t, emu, vnetID, `{"location":"eastus","properties":{
		"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16"}}]}}`)
	putResource(t, emu, lbID, lbBody(`{"name":"web"},{"name":"spare"}`))
	return emu
}

func lbBody(pools string) string {
	return `{"location":"eastus","sku":{"name":"Standard"},"properties":{
		"frontendIPConfigurations":[{"name":"fe"}],
		"probes":[{"name":"p"}],
		"backendAddressPools":[` + pools + `],
		"loadBalancingRules":[{"name":"r","properties":{"protocol":"Tcp","frontendPort":80,
			"frontendIPConfiguration":{"id":"` + lbID + `/frontendIPConfigurations/fe"},
			"probe":{"id":"` + lbID + `/probes/p"},
			"backendAddressPool":{"id":"` + poolID + `"}}}]}}`
}

func putResource(t testing.TB, emu *armemu.Emulator, id, body string) {
	t.Helper()
	if err := emu.Put(id, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func poolBody(ips ...string) string {
	var list []string
	for _, ip := range ips {
		list = append(list, `{"name":"n-`+ip+`","properties":{"ipAddress":"`+ip+`"}}`)
	}
	return `{"properties":{"virtualNetwork":{"id":"` + vnetID + `"},"loadBalancerBackendAddresses":[` + strings.Join(list, ",") + `]}}`
}

type rawResponse struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r rawResponse) errorCode() string {
	e, _ := r.body["error"].(map[string]any)
	code, _ := e["code"].(string)
	return code
}

func (r rawResponse) provisioningState() string {
	p, _ := r.body["properties"].(map[string]any)
	s, _ := p["provisioningState"].(string)
	return s
}

func (r rawResponse) stringField(key string) string {
	s, _ := r.body[key].(string)
	return s
}

// trySend sends a raw request; headers are pairs of name and value.
func trySend(ctx context.Context, emu *armemu.Emulator, method, target, body string, headers ...string) (rawResponse, error) {
	if strings.HasPrefix(target, "/") {
		target = "http://emulator.test" + target
	}
	if !strings.Contains(target, "?") {
		target += version
	}
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return rawResponse{}, err
	}
	req.Header.Set("Authorization", "Bearer token")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := emu.Transport().Do(req)
	if err != nil {
		return rawResponse{}, err
	}
	raw, err := io.ReadAll(resp.Body)
	a := rawResponse{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &a.body)
	return a, errors.Join(err, resp.Body.Close())
}

func sendRequest(t testing.TB, emu *armemu.Emulator, method, target, body string, headers ...string) rawResponse {
	t.Helper()
	a, err := trySend(t.Context(), emu, method, target, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	checkRevision(t, emu)
	return a
}

// snapshotAt is what an Emulator had at a revision.
type snapshotAt struct {
	revision int
	text     string
}

var lastSnapshots sync.Map // of each Emulator

// checkRevision checks that resources did not change without a new revision since the last request.
func checkRevision(t testing.TB, emu *armemu.Emulator) {
	t.Helper()
	got := snapshotAt{emu.Revision(), string(emu.Snapshot())}
	if emu.Revision() != got.revision {
		return // another goroutine writes
	}
	if last, found := lastSnapshots.Swap(emu, got); found && last.(snapshotAt).revision == got.revision && last.(snapshotAt).text != got.text {
		t.Errorf("resources changed at revision %d:\n%s\nwas\n%s", got.revision, got.text, last.(snapshotAt).text)
	}
}

func poolIPs(t testing.TB, emu *armemu.Emulator, id string) []string {
	t.Helper()
	raw, ok := emu.Get(id)
	if !ok {
		t.Fatalf("%s does not exist", id)
	}
	var pool armnetwork.BackendAddressPool
	if err := json.Unmarshal(raw, &pool); err != nil {
		t.Fatal(err)
	}
	var ips []string
	for _, a := range pool.Properties.LoadBalancerBackendAddresses {
		ips = append(ips, *a.Properties.IPAddress)
	}
	return ips
}

type staticToken struct{}

func (staticToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(24 * time.Hour)}, nil
}

// sendEtag adds the body's etag as If-Match to a PUT.
type sendEtag struct{}

func (sendEtag) Do(req *policy.Request) (*http.Response, error) {
	if raw := req.Raw(); raw.Method == http.MethodPut && req.Body() != nil {
		var body struct {
			Etag string `json:"etag"`
		}
		payload, err := io.ReadAll(req.Body())
		if err = errors.Join(err, req.RewindBody(), json.Unmarshal(payload, &body)); err != nil {
			return nil, err
		}
		if body.Etag != "" {
			raw.Header.Set("If-Match", body.Etag)
		}
	}
	return req.Next()
}

func newClients(t testing.TB, transport policy.Transporter, endpoint string, perCall ...policy.Policy) *armnetwork.ClientFactory {
	t.Helper()
	factory, err := armnetwork.NewClientFactory(subscription, staticToken{}, clientOptions(transport, endpoint, perCall...))
	if err != nil {
		t.Fatal(err)
	}
	return factory
}

func clientOptions(transport policy.Transporter, endpoint string, perCall ...policy.Policy) *arm.ClientOptions {
	return &arm.ClientOptions{
		DisableRPRegistration: true,
		ClientOptions: policy.ClientOptions{
			Transport:                       transport,
			Retry:                           policy.RetryOptions{MaxRetries: -1},
			PerCallPolicies:                 perCall,
			InsecureAllowCredentialWithHTTP: true,
			Cloud: cloud.Configuration{Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
				cloud.ResourceManager: {Endpoint: endpoint, Audience: endpoint},
			}},
		},
	}
}

func putPool(ctx context.Context, c *armnetwork.LoadBalancerBackendAddressPoolsClient, name string, pool armnetwork.BackendAddressPool) (armnetwork.BackendAddressPool, error) {
	poller, err := c.BeginCreateOrUpdate(ctx, "rg", "kubernetes", name, pool, nil)
	if err != nil {
		return armnetwork.BackendAddressPool{}, err
	}
	done, err := poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: time.Second})
	return done.BackendAddressPool, err
}

func address(name, ip string) *armnetwork.LoadBalancerBackendAddress {
	return &armnetwork.LoadBalancerBackendAddress{
		Name:       new(name),
		Properties: &armnetwork.LoadBalancerBackendAddressPropertiesFormat{IPAddress: new(ip)},
	}
}

func ipPool(list ...*armnetwork.LoadBalancerBackendAddress) armnetwork.BackendAddressPool {
	return armnetwork.BackendAddressPool{Properties: &armnetwork.BackendAddressPoolPropertiesFormat{
		VirtualNetwork:               &armnetwork.SubResource{ID: new(vnetID)},
		LoadBalancerBackendAddresses: list,
	}}
}
