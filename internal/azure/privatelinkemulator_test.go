// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// newEmulatorPrivateLinks starts an emulator with a network with the closed subnet nodes, and a load balancer with
// a frontend.
func newEmulatorPrivateLinks(t *testing.T, role *armemu.Role) (*armemu.Emulator, *azure.Client) {
	t.Helper()
	emu := patient.Watch(t, armemu.New(armemu.Options{LatencyScale: 1, LatencyFixed: true, Role: role}))
	if err := emu.Put(networkPrivateLinks, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`)); err != nil {
		t.Fatal(err)
	}
	balancer := `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"aaaa","properties":{"subnet":{"id":"` + nodes + `"}}}],"backendAddressPools":[{"name":"k8s"}]}}`
	if err := emu.Put(groupPrivateLinks+"loadBalancers/kubernetes", []byte(balancer)); err != nil {
		t.Fatal(err)
	}
	endpoint, credential, err := azure.LocalEndpoint(base)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: emu.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return emu, client
}

// runStep runs the next step and returns it; an Azure error is returned as its code.
func runStep(t *testing.T, client *azure.PrivateLinkClient, sharers []desired.FrontendService, set desired.Settings) string {
	t.Helper()
	seen, err := client.List(t.Context(), "s1", "rg")
	if err != nil {
		t.Fatal(err)
	}
	subnet, err := client.GetSubnet(t.Context(), idOfNetwork, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	next := desired.NextStep(frontend, desired.ResolveOwner(frontend, set, sharers, seen), seen, &subnet, set)
	switch next.Action {
	case desired.ActionOpenSubnet:
		_, err = client.OpenSubnet(t.Context(), next.Subnet)
	case desired.ActionCreate, desired.ActionUpdate:
		_, err = client.Put(t.Context(), next.Service)
	case desired.ActionDisconnect:
		err = client.DeleteConnection(t.Context(), next.Service.ID, next.Connection)
	case desired.ActionDelete:
		err = client.Delete(t.Context(), next.Service)
	}
	if f := armerror.FromError(err); f != nil {
		return string(next.Action) + ": " + f.Code
	}
	return string(next.Action)
}

// The order of the steps is the only one that the emulator accepts: first the subnet, connections
// before their service, the service before its load balancer.
func TestTheOrderHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		emu, arm := newEmulatorPrivateLinks(t, nil)
		client := azure.NewPrivateLinkClient(arm)
		all := func(l *service.PrivateLink) { l.Visibility = []string{service.AllSubscriptions} }
		play := func(sharers []desired.FrontendService) string {
			var steps []string
			for range 10 {
				s := runStep(t, client, sharers, set)
				steps = append(steps, s)
				if s == "in sync" {
					break
				}
			}
			return strings.Join(steps, ", ")
		}
		early := lb.PrivateLinkService{ID: idOfMine, Location: "eastus", Frontends: []string{frontendA}, NAT: []lb.NATAddress{{Name: "n", Subnet: nodes, Primary: true}}}
		if _, err := client.Put(t.Context(), early); armerror.FromError(err) == nil || armerror.FromError(err).Code != "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled" {
			t.Errorf("in a closed subnet: %v", err)
		}
		if got := play(newSharers(all)); got != "open the subnet, create, in sync" {
			t.Errorf("made by %s", got)
		}
		for i := range 2 {
			if _, err := emu.Connect(mine, fmt.Sprintf("/subscriptions/%s/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe%d", bluePrivateLinks, i)); err != nil {
				t.Fatal(err)
			}
		}
		shared := newSharers(all, func(l *service.PrivateLink) { l.Count = 2 })
		if got := play(shared); got != "update, in sync" {
			t.Errorf("changed by %s", got)
		}
		read, err := client.Get(t.Context(), idOfMine)
		if err != nil || desired.CountConnections(read).Pending != 2 || len(read.NAT) != 2 {
			t.Fatalf("%+v, %v", read, err)
		}
		balancer, err := arm.GetLoadBalancer(t.Context(), lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes"})
		if err != nil {
			t.Fatal(err)
		}
		if err := arm.DeleteLoadBalancer(t.Context(), balancer); armerror.FromError(err) == nil || armerror.FromError(err).Code != "LoadBalancerInUseByPrivateLinkService" || desired.DescribePublishers(frontend, []lb.PrivateLinkService{read}) == "" {
			t.Errorf("before its service: %v", err)
		}
		if err := client.Delete(t.Context(), read); armerror.FromError(err) == nil || armerror.FromError(err).Code != "PrivateLinkServiceInUseByPrivateEndpoints" {
			t.Errorf("before its connections: %v", err)
		}
		if got := play(nil); got != "disconnect, disconnect, delete, in sync" {
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
