// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// A Service is published, a consumer's connection is visible within five minutes, and everything is
// deleted with the Service although the process dies during the deletion.
func TestAServiceThatIsPublished(t *testing.T) {
	runStage(t, Options{Configure: openSubnets, Role: shipped.AzureRoles()}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", requestLinkService))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.connectConsumer(1))
		s.Sleep(6 * time.Minute)
		links, err := s.listLinkServices()
		if err != nil || len(links) != 1 {
			t.Fatalf("%d are published, %v", len(links), err)
		}
		failOn(s.DeleteService("shop/web"))
		for range 4 {
			s.Sleep(7 * time.Second)
			s.KillProcess(0)
		}
		failOn(s.WaitInSync(20 * time.Minute))
		if links, err = s.listLinkServices(); err != nil || len(links) > 0 {
			t.Errorf("%d are left, %v", len(links), err)
		}
	})
}

// connections returns the connection metric by state.
func (s *Stage) connections() map[string]float64 {
	families, err := s.replicas[0].process.Load().metrics.Gather()
	failOn(err)
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "weir_private_link_connections" {
			continue
		}
		for _, m := range family.GetMetric() {
			counts[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return counts
}

func (s *Stage) counts(want map[string]float64) {
	if got := s.connections(); !maps.Equal(got, want) {
		failOn(fmt.Errorf("connections are counted as %v, want %v", got, want))
	}
}

// requestConnection requests a connection to a Service's Private Link Service from a subscription.
func (s *Stage) requestConnection(service, subscription, endpoint string) (connection string) {
	for _, l := range s.linkServicesOf(service) {
		id, err := s.emulator.Connect(l.ID, "/subscriptions/"+subscription+"/resourceGroups/consumers/providers/Microsoft.Network/privateEndpoints/"+endpoint)
		failOn(err)
		return id
	}
	failOn(fmt.Errorf("%s is not published", service))
	return ""
}

// linkServicesOf returns the Private Link Services tagged with a Service.
func (s *Stage) linkServicesOf(service string) []linkService {
	services, err := s.listLinkServices()
	failOn(err)
	return slices.DeleteFunc(services, func(l linkService) bool { return l.Tags["k8s-azure-owner-service"] != service })
}

// Connections are counted by state within five minutes, and removed with their Service.
func TestConnectionsAreCounted(t *testing.T) {
	runStage(t, Options{Configure: openSubnets}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		for _, name := range []string{"shop/web", "shop/api"} {
			failOn(s.AddService(name, func(svc *corev1.Service) {
				requestLinkService(svc)
				setAnnotation(svc, annotation+"azure-pls-visibility", "*")
				setAnnotation(svc, annotation+"azure-pls-auto-approval", someSubscription)
			}))
		}
		failOn(s.WaitInSync(10 * time.Minute))
		s.counts(map[string]float64{"pending": 0, "approved": 0, "rejected": 0, "other": 0})
		other := "22222222-2222-2222-2222-222222222222"
		s.requestConnection("shop/web", someSubscription, "one")
		s.requestConnection("shop/web", other, "two")
		s.requestConnection("shop/api", other, "three")
		s.Sleep(6 * time.Minute)
		s.counts(map[string]float64{"pending": 2, "approved": 1, "rejected": 0, "other": 0})
		refused := s.requestConnection("shop/web", other, "four")
		body, _ := s.emulator.Get(refused)
		failOn(s.emulator.Put(refused, bytes.Replace(body, []byte(`"Pending"`), []byte(`"Rejected"`), 1)))
		s.Sleep(6 * time.Minute)
		s.counts(map[string]float64{"pending": 2, "approved": 1, "rejected": 1, "other": 0})
		failOn(s.DeleteService("shop/web"))
		failOn(s.WaitInSync(10 * time.Minute))
		s.counts(map[string]float64{"pending": 1, "approved": 0, "rejected": 0, "other": 0})
		failOn(s.ChangeService("shop/api", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-create", "") }))
		s.Sleep(time.Minute)
		s.counts(map[string]float64{"pending": 0, "approved": 0, "rejected": 0, "other": 0})
	})
}

// A deletion that Azure does not finish is reported on the Service with what it waits for, and does
// not block other Services; the frontend and load balancer are deleted afterwards.
func TestARemovalThatHangs(t *testing.T) {
	runStage(t, Options{Configure: openSubnets}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", requestLinkService))
		failOn(s.WaitInSync(10 * time.Minute))
		got := s.linkServicesOf("shop/web")[0]
		connection := s.requestConnection("shop/web", subscription, "one")
		frontend := got.Properties.Frontends[0].ID
		failOn(s.AzureFaults(`{match: {kind: delete, path: "**/privateEndpointConnections/*", maxMatches: 1}, action: {operation: {stuck: true}}}`))
		failOn(s.DeleteService("shop/web"))
		s.Sleep(time.Minute)
		failOn(s.AddService("blog/web", nil))
		s.Sleep(time.Minute)
		failOn(s.expectAnyAddress("blog/web"))
		s.Sleep(8 * time.Minute)

		waits := fmt.Sprintf("private link service %s has yet to lose connection %s of private endpoint ", path.Base(got.ID), path.Base(connection))
		s.expectEvent("SyncLoadBalancerFailed", waits)
		var svc corev1.Service
		failOn(s.userClient.Get(ctx, parseKey("shop/web"), &svc))
		if c := meta.FindStatusCondition(svc.Status.Conditions, "weir.dev/PrivateLinkService"); c == nil || c.Reason != "Waits" || !strings.HasPrefix(c.Message, waits) {
			failOn(fmt.Errorf("its condition is %+v, want that it waits: %q", c, waits))
		}
		balancer, _, _ := strings.Cut(frontend, "/frontendIPConfigurations/")
		if shown, _ := s.emulator.Get(balancer); !bytes.Contains(shown, []byte(strconv.Quote(frontend))) {
			failOn(fmt.Errorf("frontend %s has gone from %s", frontend, shown))
		}

		body, _ := s.emulator.Get(got.ID)
		failOn(s.emulator.Put(got.ID, withoutProperty(body, "privateEndpointConnections")))
		before := len(s.azureWrites())
		failOn(s.WaitInSync(10 * time.Minute))
		if next := s.azureWrites()[before:]; len(next) < 2 || next[0] != "DELETE "+got.ID+": 202" || next[1] != "PUT "+balancer+": 200" {
			failOn(fmt.Errorf("at the end it writes %q, want %s deleted before its frontend", next, got.ID))
		}
	})
}

// A Service with pools of addresses gets an event with the azure.json key to change; after the
// change and conversion, it is published without further events.
func TestFromPoolsOfAddressesToAPublishedService(t *testing.T) {
	addresses := func(c *config.Config) {
		useAddresses(c)
		c.DisableSubnetPolicies = true
	}
	runStage(t, Options{Configure: addresses, Machines: true, Role: shipped.AzureRoles()}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", requestLinkService))
		s.Sleep(2 * time.Minute)
		failOn(s.expectAnyAddress("shop/web"))
		s.expectEvent("PrivateLinkServiceRefused", `"true": want backend pools of network interfaces: Azure supports no Private Link Service in front of pools of addresses. Write loadBalancerBackendPoolConfigurationType: nodeIPConfiguration into azure.json`)
		for _, call := range s.emulator.Calls(func(c armemu.Call) bool {
			return c.Method != http.MethodGet && strings.Contains(c.Path, "/privateLinkServices/")
		}) {
			failOn(fmt.Errorf("Azure was asked for it: %s %s", call.Method, call.Path))
		}
		failOn(s.Configure(openSubnets))
		failOn(s.WaitInSync(30 * time.Minute))
		if got := s.linkServicesOf("shop/web"); len(got) != 1 {
			failOn(fmt.Errorf("it is published by %v", got))
		}
	})
}

// expectAnyAddress requires that a Service has an address.
func (s *Stage) expectAnyAddress(name string) error {
	var svc corev1.Service
	err := s.userClient.Get(ctx, parseKey(name), &svc)
	if err == nil && len(svc.Status.LoadBalancer.Ingress) == 0 {
		err = fmt.Errorf("%s has no address", name)
	}
	return err
}

// withoutProperty removes a property from a resource.
func withoutProperty(body []byte, property string) []byte {
	var values map[string]any
	failOn(json.Unmarshal(body, &values))
	properties, _ := values["properties"].(map[string]any)
	delete(properties, property)
	next, err := json.Marshal(values)
	failOn(err)
	return next
}
