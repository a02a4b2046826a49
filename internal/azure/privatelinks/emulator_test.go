// SPDX-License-Identifier: Apache-2.0

package privatelinks_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/azure/privatelinks"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// emulated starts an emulator with a network with the closed subnet nodes, and a load balancer with
// a frontend.
func emulated(t *testing.T, role *armemu.Role) (*armemu.Emulator, *azure.Client) {
	t.Helper()
	emu := patient.Watched(t, armemu.New(armemu.Options{LatencyScale: 1, LatencyFixed: true, Role: role}))
	if err := emu.Put(network, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`)); err != nil {
		t.Fatal(err)
	}
	balancer := `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"aaaa","properties":{"subnet":{"id":"` + nodes + `"}}}],"backendAddressPools":[{"name":"k8s"}]}}`
	if err := emu.Put(group+"loadBalancers/kubernetes", []byte(balancer)); err != nil {
		t.Fatal(err)
	}
	endpoint, credential, err := azure.Emulator(base)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: emu.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return emu, client
}

// step runs the next step and returns it; an Azure error is returned as its code.
func step(t *testing.T, client *privatelinks.Client, sharers []privatelink.Sharer, set privatelink.Settings) string {
	t.Helper()
	seen, err := client.List(t.Context(), "s1", "rg")
	if err != nil {
		t.Fatal(err)
	}
	subnet, err := client.GetSubnet(t.Context(), idOfNetwork, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	next := privatelink.Next(frontend, privatelink.Share(frontend, set, sharers, seen), seen, &subnet, set)
	switch next.Do {
	case privatelink.OpenSubnet:
		_, err = client.OpenSubnet(t.Context(), next.Subnet)
	case privatelink.Create, privatelink.Change:
		_, err = client.Put(t.Context(), next.Service)
	case privatelink.Disconnect:
		err = client.DeleteConnection(t.Context(), next.Service.ID, next.Connection)
	case privatelink.Delete:
		err = client.Delete(t.Context(), next.Service)
	}
	if f := fault.From(err); f != nil {
		return string(next.Do) + ": " + f.Code
	}
	return string(next.Do)
}

// The order of the steps is the only one that the emulator accepts: first the subnet, connections
// before their service, the service before its load balancer.
func TestTheOrderHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		emu, arm := emulated(t, nil)
		client := privatelinks.New(arm)
		all := func(l *service.PrivateLink) { l.Visibility = []string{service.Everybody} }
		play := func(sharers []privatelink.Sharer) string {
			var steps []string
			for range 10 {
				s := step(t, client, sharers, set)
				steps = append(steps, s)
				if s == "level" {
					break
				}
			}
			return strings.Join(steps, ", ")
		}
		early := lb.PrivateLinkService{ID: idOfMine, Location: "eastus", Frontends: []string{frontendA}, NAT: []lb.NATAddress{{Name: "n", Subnet: nodes, Primary: true}}}
		if _, err := client.Put(t.Context(), early); fault.From(err) == nil || fault.From(err).Code != "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled" {
			t.Errorf("in a closed subnet: %v", err)
		}
		if got := play(asks(all)); got != "open the subnet, create, level" {
			t.Errorf("made by %s", got)
		}
		for i := range 2 {
			if _, err := emu.Connect(mine, fmt.Sprintf("/subscriptions/%s/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe%d", blue, i)); err != nil {
				t.Fatal(err)
			}
		}
		shared := asks(all, func(l *service.PrivateLink) { l.Count = 2 })
		if got := play(shared); got != "change, level" {
			t.Errorf("changed by %s", got)
		}
		read, err := client.Get(t.Context(), idOfMine)
		if err != nil || privatelink.Connections(read).Pending != 2 || len(read.NAT) != 2 {
			t.Fatalf("%+v, %v", read, err)
		}
		balancer, err := arm.GetLoadBalancer(t.Context(), lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes"})
		if err != nil {
			t.Fatal(err)
		}
		if err := arm.DeleteLoadBalancer(t.Context(), balancer); fault.From(err) == nil || fault.From(err).Code != "LoadBalancerInUseByPrivateLinkService" || privatelink.Holding(frontend, []lb.PrivateLinkService{read}) == "" {
			t.Errorf("before its service: %v", err)
		}
		if err := client.Delete(t.Context(), read); fault.From(err) == nil || fault.From(err).Code != "PrivateLinkServiceInUseByPrivateEndpoints" {
			t.Errorf("before its connections: %v", err)
		}
		if got := play(nil); got != "disconnect, disconnect, delete, level" {
			t.Errorf("removed by %s", got)
		}
		if balancer, err = arm.GetLoadBalancer(t.Context(), balancer.ID); err != nil {
			t.Fatal(err)
		}
		if err := arm.DeleteLoadBalancer(t.Context(), balancer); err != nil {
			t.Error(err)
		}
	})
}
