// SPDX-License-Identifier: Apache-2.0

package nicupdate_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/nic/nicupdate"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

const (
	group    = "/subscriptions/s1/resourceGroups/rg/providers/"
	vnet     = group + "Microsoft.Network/virtualNetworks/v"
	balancer = group + "Microsoft.Network/loadBalancers/kubernetes"
	compute  = group + "Microsoft.Compute/"
	blue     = compute + "virtualMachineScaleSets/blue"
)

// wire implements Azure over the real clients.
type wire struct {
	*azure.MachineClient
	arm *azure.Client
}

func (w wire) EnterResource(id lb.ResourceID) (time.Time, string) { return w.arm.EnterResource(id) }

// nodes is a cluster whose pool exists from the start.
type nodes struct{}

func (nodes) Machines() []nic.Node        { return nil }
func (nodes) InterfacePools() []lb.PoolID { return []lb.PoolID{poolID} }

var poolID = lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes"}, Name: "k8s"}

// emulated is an Azure with two virtual machines and a scale set of two.
func emulated(t *testing.T) (*armemu.Emulator, wire) {
	t.Helper()
	emu := patient.Watch(t, armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, LatencyFixed: true}))
	ip := `{"name":"ip","properties":{"primary":true,"subnet":{"id":"` + vnet + `/subnets/nodes"},"loadBalancerBackendAddressPools":[{"id":"` + balancer + `/backendAddressPools/outbound"}]}}`
	for _, seed := range [][2]string{
		{vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16"}}]}}`},
		{balancer, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"k8s"},{"name":"outbound"}]}}`},
		{group + "Microsoft.Network/networkInterfaces/nic-1", `{"location":"eastus","properties":{"ipConfigurations":[` + ip + `]}}`},
		{group + "Microsoft.Network/networkInterfaces/nic-2", `{"location":"eastus","properties":{"ipConfigurations":[` + ip + `]}}`},
		{compute + "virtualMachines/n1", `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"` + group + `Microsoft.Network/networkInterfaces/nic-1"}]}}}`},
		{compute + "virtualMachines/n2", `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"` + group + `Microsoft.Network/networkInterfaces/nic-2"}]}}}`},
	} {
		if err := emu.Put(seed[0], []byte(seed[1])); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1:8080"+blue+"?api-version=2024-07-01", strings.NewReader(
		`{"location":"eastus","sku":{"name":"s","capacity":2},"properties":{"orchestrationMode":"Uniform","upgradePolicy":{"mode":"Manual"},"virtualMachineProfile":{"networkProfile":{
		"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,"ipConfigurations":[`+ip+`]}}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer x")
	request.Header.Set("Content-Type", "application/json")
	answer, err := emu.Transport().Do(request)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
	endpoint, credential, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: emu.Transport(), VirtualNetworkID: vnet, Retry: azure.Retry{Delay: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return emu, wire{azure.NewMachineClient(client), client}
}

// With the real clients and the emulator, machines and instances join a pool next to the outbound
// one and leave it again, with the fewest writes.
func TestMachinesOfTheEmulator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu, azure := emulated(t)
		time.Sleep(time.Hour)
		emu.ClearCalls()
		var machines []nic.Machine
		for _, id := range []string{"virtualMachines/n1", "virtualMachines/n2", "virtualMachineScaleSets/blue/virtualMachines/0", "virtualMachineScaleSets/blue/virtualMachines/1"} {
			m, err := nic.ParseMachine("azure://" + compute + id)
			if err != nil {
				t.Fatal(err)
			}
			machines = append(machines, m)
		}
		var settled atomic.Int32
		u := nicupdate.New(nicupdate.Config{Azure: azure, Cluster: nodes{}, Parallel: 4, OnPoolIdle: func(lb.PoolID) { settled.Add(1) }, Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { u.Run(ctx); close(ended) }()
		p := nic.Pool{ID: poolID, Family: lb.IPv4, Configuration: "kubernetes", AllNodes: true}
		for n, target := range []nic.Target{{Pool: p}, {Pool: p, ToRemove: machines}} {
			want := 0
			if n == 0 {
				target.Members, target.Missing, want = machines, machines, 4
			}
			u.SetTarget(target)
			time.Sleep(time.Hour)
			synctest.Wait()
			pool, err := azure.arm.GetPool(t.Context(), poolID)
			if err != nil || len(pool.Addresses) != want {
				t.Errorf("the pool shows %d machines, want %d: %v", len(pool.Addresses), want, err)
			}
			outbound, err := azure.arm.GetPool(t.Context(), lb.PoolID{LoadBalancer: poolID.LoadBalancer, Name: "outbound"})
			if err != nil || len(outbound.Addresses) != 4 {
				t.Errorf("the pool of outbound rules shows %d machines: %v", len(outbound.Addresses), err)
			}
			if got := u.SetTarget(target); len(got.Waiting)+len(got.Failed) > 0 {
				t.Errorf("not done: %+v", got)
			}
			time.Sleep(time.Hour)
			if calls := writes(emu); calls != "PATCH 1 POST 1 PUT 2" {
				t.Errorf("written by %s", calls)
			}
		}
		if n := settled.Load(); n != 4 {
			t.Errorf("the pool has settled %d times", n)
		}
		stop()
		<-ended
	})
}

// writes counts the writes since the last call.
func writes(emu *armemu.Emulator) string {
	n := map[string]int{}
	for _, c := range emu.Calls() {
		n[c.Method]++
	}
	emu.ClearCalls()
	return fmt.Sprintf("PATCH %d POST %d PUT %d", n[http.MethodPatch], n[http.MethodPost], n[http.MethodPut])
}
