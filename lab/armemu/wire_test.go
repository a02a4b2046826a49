// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
	"weir.dev/weir/test/worlds"
)

type recordingTransport struct {
	inner interface {
		Do(*http.Request) (*http.Response, error)
	}
	text  strings.Builder
	start time.Time
}

func (r *recordingTransport) Do(req *http.Request) (*http.Response, error) {
	fmt.Fprintf(&r.text, "== %v %s %s\n", time.Since(r.start), req.Method, req.URL.RequestURI())
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.writeBody(body)
	}
	resp, err := r.inner.Do(req)
	if err != nil {
		fmt.Fprintf(&r.text, "-> %v\n\n", err)
		return nil, err
	}
	fmt.Fprintf(&r.text, "-> %s\n", resp.Status)
	for _, name := range []string{"Azure-Asyncoperation", "Etag", "Location", "Retry-After"} {
		if v := resp.Header.Get(name); v != "" {
			fmt.Fprintf(&r.text, "%s: %s\n", name, v)
		}
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	r.writeBody(body)
	r.text.WriteString("\n")
	return resp, err
}

func (r *recordingTransport) writeBody(raw []byte) {
	var pretty bytes.Buffer
	if len(raw) > 0 && json.Indent(&pretty, raw, "", "  ") == nil {
		r.text.WriteString(pretty.String() + "\n")
	}
}

func TestGoldenWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := armemu.New(armemu.Options{Seed: 7, LatencyScale: 1})
		tr := &recordingTransport{inner: emu.Transport(), start: time.Now()}
		clients := newClients(t, tr, "http://emulator.test", sendEtag{})
		poolLifecycle(t, clients)
		referencepage.ExpectFile(t, "testdata/wire/pool.txt", tr.text.String())
	})
}

func poolLifecycle(t *testing.T, clients *armnetwork.ClientFactory) {
	t.Helper()
	ctx := t.Context()
	vnets, lbs, pools := clients.NewVirtualNetworksClient(), clients.NewLoadBalancersClient(), clients.NewLoadBalancerBackendAddressPoolsClient()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	vnet, err := vnets.BeginCreateOrUpdate(ctx, "rg", "vnet", armnetwork.VirtualNetwork{
		Location: new("eastus"),
		Properties: &armnetwork.VirtualNetworkPropertiesFormat{Subnets: []*armnetwork.Subnet{{
			Name: new("nodes"), Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: new("10.0.0.0/16")},
		}}},
	}, nil)
	must(err)
	_, err = vnet.PollUntilDone(ctx, nil)
	must(err)
	lb, err := lbs.BeginCreateOrUpdate(ctx, "rg", "kubernetes", armnetwork.LoadBalancer{
		Location: new("eastus"),
		SKU:      &armnetwork.LoadBalancerSKU{Name: new(armnetwork.LoadBalancerSKUNameStandard)},
		Properties: &armnetwork.LoadBalancerPropertiesFormat{
			FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{{
				Name:       new("fe"),
				Properties: &armnetwork.FrontendIPConfigurationPropertiesFormat{Subnet: &armnetwork.Subnet{ID: new(nodesID)}},
			}},
		},
	}, nil)
	must(err)
	_, err = lb.PollUntilDone(ctx, nil)
	must(err)
	created, err := putPool(ctx, pools, "web", ipPool(address("node-0", "10.0.0.4")))
	must(err)
	created.Properties.LoadBalancerBackendAddresses[0].Properties.AdminState = new(armnetwork.LoadBalancerBackendAddressAdminStateDown)
	created.Properties.LoadBalancerBackendAddresses = append(created.Properties.LoadBalancerBackendAddresses, address("node-1", "10.0.0.5"))
	changed, err := putPool(ctx, pools, "web", created)
	must(err)
	if n := len(changed.Properties.LoadBalancerBackendAddresses); n != 2 || *changed.Properties.ProvisioningState != armnetwork.ProvisioningStateSucceeded {
		t.Fatalf("after the second PUT: %d addresses, %s", n, *changed.Properties.ProvisioningState)
	}
	got, err := pools.Get(ctx, "rg", "kubernetes", "web", nil)
	must(err)
	if *got.Etag == *created.Etag {
		t.Error("a write left the etag as it was")
	}
	pages := pools.NewListPager("rg", "kubernetes", nil)
	page, err := pages.NextPage(ctx)
	must(err)
	if len(page.Value) != 1 || pages.More() {
		t.Errorf("LIST shows %d pools", len(page.Value))
	}
	gone, err := pools.BeginDelete(ctx, "rg", "kubernetes", "web", nil)
	must(err)
	_, err = gone.PollUntilDone(ctx, nil)
	must(err)
	_, err = pools.Get(ctx, "rg", "kubernetes", "web", nil)
	wantError(t, err, http.StatusNotFound, "NotFound")
	lbGone, err := lbs.BeginDelete(ctx, "rg", "kubernetes", nil)
	must(err)
	_, err = lbGone.PollUntilDone(ctx, nil)
	must(err)
	_, err = pools.Get(ctx, "rg", "kubernetes", "web", nil)
	wantError(t, err, http.StatusNotFound, "ResourceNotFound")
}

func wantError(t *testing.T, err error, status int, code string) {
	t.Helper()
	response, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || response.StatusCode != status || response.ErrorCode != code {
		t.Errorf("got %v, want status %d with code %s", err, status, code)
	}
}

func TestLifeOfAPoolOverTCP(t *testing.T) {
	emu := armemu.New(armemu.Options{Seed: 7})
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: emu, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	poolLifecycle(t, newClients(t, client, "http://"+listener.Addr().String()))
	transport.CloseIdleConnections()
	if err := server.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if n := len(emu.Calls(armemu.ByKind(armemu.KindPoll))); n < 5 {
		t.Errorf("%d polls came over TCP, want one for each of 5 operations at least", n)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	body := `{"marker":1.50,"properties":{"virtualNetwork":{"id":"` + vnetID + `"},"futureSetting":{"deep":[1,2]},
		"loadBalancerBackendAddresses":[{"name":"n","zone":"1","properties":{"ipAddress":"10.0.0.4","weight":7}}]}}`
	if a := sendRequest(t, emu, http.MethodPut, poolID, body); a.status != http.StatusOK {
		t.Fatal(a.raw)
	}
	got := sendRequest(t, emu, http.MethodGet, poolID, "").raw
	for _, want := range []string{`"marker":1.50`, `"futureSetting":{"deep":[1,2]}`, `"zone":"1"`, `"weight":7`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is lost: %s", want, got)
		}
	}
}

func TestLoadBalancerPutReplacesItsPools(t *testing.T) {
	emu := newCloud(t, armemu.Options{Behavior: worlds.BatchedWrites()})
	sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.4", "10.0.0.5"))
	inline := strings.Replace(poolBody("10.0.0.9"), "{", `{"name":"web",`, 1)
	if a := sendRequest(t, emu, http.MethodPut, lbID, lbBody(inline)); a.status != http.StatusOK {
		t.Fatal(a.raw)
	}
	if got := poolIPs(t, emu, poolID); !slices.Equal(got, []string{"10.0.0.9"}) {
		t.Errorf("the pool holds %v after an inline PUT of 10.0.0.9", got)
	}
	if _, ok := emu.Get(lbID + "/backendAddressPools/spare"); ok {
		t.Error("a pool that the body leaves out is still there")
	}
	sendRequest(t, emu, http.MethodPut, lbID, lbBody(`{"name":"web"}`))
	if got := poolIPs(t, emu, poolID); len(got) != 0 {
		t.Errorf("a PUT without addresses left %v", got)
	}
}

func TestNICMembershipSurvivesWrites(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	putResource(t, emu, poolID, `{"properties":{"backendIPConfigurations":[{"id":"/nic/1"}]}}`)
	sendRequest(t, emu, http.MethodPut, poolID, `{"properties":{"backendIPConfigurations":[]}}`)
	sendRequest(t, emu, http.MethodPut, lbID, lbBody(`{"name":"web"}`))
	if got := sendRequest(t, emu, http.MethodGet, poolID, "").raw; !strings.Contains(got, `"backendIPConfigurations":[{"id":"/nic/1"}]`) {
		t.Errorf("the pool has lost its NICs: %s", got)
	}
}

func TestBackReferences(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	want := `"loadBalancingRules":[{"id":"` + lbID + `/loadBalancingRules/r"}]`
	if got := sendRequest(t, emu, http.MethodGet, lbID, "").raw; strings.Count(got, want) != 3 {
		t.Errorf("not shown by the pool, the frontend and the probe: %s", got)
	}
	spare := lbID + "/backendAddressPools/spare"
	sendRequest(t, emu, http.MethodPut, spare, `{"etag":"x","id":"y","properties":{"loadBalancingRules":[{"id":"/forged"}],"provisioningState":"Failed"}}`)
	if got := sendRequest(t, emu, http.MethodGet, spare, ""); strings.Contains(got.raw, "forged") || got.provisioningState() != "Succeeded" || got.stringField("id") != spare {
		t.Errorf("a client wrote what is the server's: %s", got.raw)
	}
}
