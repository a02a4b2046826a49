// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/lab/armemu"
)

// computeDo waits for the operation.
func computeDo(t *testing.T, client *arm.Client, method, id, body string) map[string]any {
	t.Helper()
	req, err := runtime.NewRequest(t.Context(), method, runtime.JoinPaths(client.Endpoint(), id))
	if err != nil {
		t.Fatal(err)
	}
	query := req.Raw().URL.Query()
	query.Set("api-version", "2024-07-01")
	req.Raw().URL.RawQuery = query.Encode()
	if body != "" {
		if err := runtime.MarshalAsJSON(req, json.RawMessage(body)); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := client.Pipeline().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if !runtime.HasStatusCode(resp, 200, 201, 202, 204) {
		t.Fatal(runtime.NewResponseError(resp))
	}
	poller, err := runtime.NewPoller[map[string]any](resp, client.Pipeline(), nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := poller.PollUntilDone(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func newComputeClient(t *testing.T, emu *armemu.Emulator) *arm.Client {
	t.Helper()
	client, err := arm.NewClient("test", "v0.0.0", staticToken{}, clientOptions(emu.Transport(), "http://emulator.test"))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestTheSDKUpgradesAScaleSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		client := newComputeClient(t, emu)
		clients := newClients(t, emu.Transport(), "http://emulator.test")
		computeDo(t, client, http.MethodPut, setID, setBody("Manual", 2))
		computeDo(t, client, http.MethodPatch, setID, setBody("Manual", 2, poolID))
		computeDo(t, client, http.MethodPost, setID+"/manualupgrade", `{"instanceIds":["0"]}`)
		computeDo(t, client, http.MethodPut, instanceID("1"), instanceInPools(poolID))
		pool, err := clients.NewLoadBalancerBackendAddressPoolsClient().Get(t.Context(), "rg", "kubernetes", "web", nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(pool.Properties.LoadBalancerBackendAddresses); n != 2 {
			t.Errorf("%d addresses", n)
		}
		var members []string
		for _, c := range pool.Properties.BackendIPConfigurations {
			members = append(members, *c.ID)
		}
		if want := []string{instanceID("0") + "/networkInterfaces/n/ipConfigurations/ip", instanceID("1") + "/networkInterfaces/n/ipConfigurations/ip"}; !slices.Equal(members, want) {
			t.Errorf("the pool shows %q", members)
		}
		nics := clients.NewInterfacesClient()
		single, err := nics.GetVirtualMachineScaleSetNetworkInterface(t.Context(), "rg", "set", "1", "n", nil)
		if err != nil {
			t.Fatal(err)
		}
		config := single.Properties.IPConfigurations[0].Properties
		if *config.PrivateIPAddress == "" || *config.LoadBalancerBackendAddressPools[0].ID != poolID || *single.Properties.VirtualMachine.ID != instanceID("1") {
			t.Errorf("the interface is %+v", *config)
		}
		if ips := scaleSetIPs(t.Context(), t, nics); len(ips) != 2 || ips[0] == ips[1] {
			t.Errorf("addresses %q", ips)
		}
		_, err = nics.GetVirtualMachineScaleSetNetworkInterface(t.Context(), "rg", "set", "1", "other", nil)
		wantError(t, err, 404, "NotFound")
		_, err = nics.GetVirtualMachineScaleSetNetworkInterface(t.Context(), "rg", "set", "first", "n", nil)
		wantError(t, err, 400, "InvalidParameter")
		_, err = nics.GetVirtualMachineScaleSetNetworkInterface(t.Context(), "rg", "none", "0", "n", nil)
		wantError(t, err, 404, "ResourceNotFound")
	})
}

func scaleSetIPs(ctx context.Context, t *testing.T, nics *armnetwork.InterfacesClient) (ips []string) {
	t.Helper()
	for pager := nics.NewListVirtualMachineScaleSetNetworkInterfacesPager("rg", "set", nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, nic := range page.Value {
			ips = append(ips, *nic.Properties.IPConfigurations[0].Properties.PrivateIPAddress)
		}
	}
	return ips
}

func TestTheSDKMovesAnInterface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		putResource(t, emu, vmID, `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+`n"}]}}}`)
		putResource(t, emu, nics+"n", nicInPools(""))
		clients := newClients(t, emu.Transport(), "http://emulator.test", sendEtag{})
		client := clients.NewInterfacesClient()
		for _, pools := range [][]*armnetwork.BackendAddressPool{{{ID: to.Ptr(poolID)}}, {}} {
			read, err := client.Get(t.Context(), "rg", "n", nil)
			if err != nil {
				t.Fatal(err)
			}
			nic, balancer := readEtag(t, emu, nics+"n"), readEtag(t, emu, lbID)
			read.Properties.IPConfigurations[0].Properties.LoadBalancerBackendAddressPools = pools
			began := time.Now()
			poller, err := client.BeginCreateOrUpdate(t.Context(), "rg", "n", read.Interface, nil)
			if err != nil {
				t.Fatal(err)
			}
			accepted := readEtag(t, emu, nics+"n")
			if _, err = poller.PollUntilDone(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if time.Since(began) < 10*time.Second {
				t.Errorf("done after %s", time.Since(began))
			}
			if done := readEtag(t, emu, nics+"n"); accepted == nic || done == accepted || readEtag(t, emu, lbID) == balancer {
				t.Errorf("etags %s %s %s, load balancer %s %s", nic, accepted, done, balancer, readEtag(t, emu, lbID))
			}
			if got := strings.Count(poolAdminStates(t, emu, poolID), "rg_nip="); got != len(pools) {
				t.Errorf("the pool shows %s", poolAdminStates(t, emu, poolID))
			}
			_, err = client.BeginCreateOrUpdate(t.Context(), "rg", "n", read.Interface, nil)
			wantError(t, err, 412, "PreconditionFailed")
		}
	})
}
