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
// deleted with the Service although the process dies meanwhile.
func TestAServiceThatIsPublished(t *testing.T) {
	stage(t, Options{Configure: opensSubnets, Role: shipped.AzureRoles()}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", publishes))
		must(s.Settles(10 * time.Minute))
		must(s.connect(1))
		s.Pass(6 * time.Minute)
		links, err := s.links()
		if err != nil || len(links) != 1 {
			t.Fatalf("%d are published, %v", len(links), err)
		}
		must(s.DeleteService("shop/web"))
		for range 4 {
			s.Pass(7 * time.Second)
			s.Kill(0)
		}
		must(s.Settles(20 * time.Minute))
		if links, err = s.links(); err != nil || len(links) > 0 {
			t.Errorf("%d are left, %v", len(links), err)
		}
	})
}

// connections returns the connection metric by state.
func (s *Stage) connections() map[string]float64 {
	families, err := s.replicas[0].process.Load().metrics.Gather()
	must(err)
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
	if is := s.connections(); !maps.Equal(is, want) {
		must(fmt.Errorf("connections are counted as %v, want %v", is, want))
	}
}

// asked requests a connection to a Service's Private Link Service from a subscription.
func (s *Stage) asked(service, subscription, endpoint string) (connection string) {
	for _, l := range s.published(service) {
		id, err := s.emu.Connect(l.ID, "/subscriptions/"+subscription+"/resourceGroups/consumers/providers/Microsoft.Network/privateEndpoints/"+endpoint)
		must(err)
		return id
	}
	must(fmt.Errorf("%s is not published", service))
	return ""
}

// published returns the Private Link Services tagged with a Service.
func (s *Stage) published(service string) []link {
	all, err := s.links()
	must(err)
	return slices.DeleteFunc(all, func(l link) bool { return l.Tags["k8s-azure-owner-service"] != service })
}

// Connections are counted by state within five minutes, and removed with their Service.
func TestConnectionsAreCounted(t *testing.T) {
	stage(t, Options{Configure: opensSubnets}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		for _, name := range []string{"shop/web", "shop/api"} {
			must(s.AddService(name, func(svc *corev1.Service) {
				publishes(svc)
				setAnnotation(svc, annotation+"azure-pls-visibility", "*")
				setAnnotation(svc, annotation+"azure-pls-auto-approval", someSubscription)
			}))
		}
		must(s.Settles(10 * time.Minute))
		s.counts(map[string]float64{"pending": 0, "approved": 0, "rejected": 0, "other": 0})
		other := "22222222-2222-2222-2222-222222222222"
		s.asked("shop/web", someSubscription, "one")
		s.asked("shop/web", other, "two")
		s.asked("shop/api", other, "three")
		s.Pass(6 * time.Minute)
		s.counts(map[string]float64{"pending": 2, "approved": 1, "rejected": 0, "other": 0})
		refused := s.asked("shop/web", other, "four")
		body, _ := s.emu.Get(refused)
		must(s.emu.Put(refused, bytes.Replace(body, []byte(`"Pending"`), []byte(`"Rejected"`), 1)))
		s.Pass(6 * time.Minute)
		s.counts(map[string]float64{"pending": 2, "approved": 1, "rejected": 1, "other": 0})
		must(s.DeleteService("shop/web"))
		must(s.Settles(10 * time.Minute))
		s.counts(map[string]float64{"pending": 1, "approved": 0, "rejected": 0, "other": 0})
		must(s.ChangeService("shop/api", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-create", "") }))
		s.Pass(time.Minute)
		s.counts(map[string]float64{"pending": 0, "approved": 0, "rejected": 0, "other": 0})
	})
}

// A deletion that Azure does not finish is reported on the Service with what it waits for, and does
// not block other Services; the frontend and load balancer are deleted afterwards.
func TestARemovalThatHangs(t *testing.T) {
	stage(t, Options{Configure: opensSubnets}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", publishes))
		must(s.Settles(10 * time.Minute))
		is := s.published("shop/web")[0]
		connection := s.asked("shop/web", subscription, "one")
		frontend := is.Properties.Frontends[0].ID
		must(s.AzureFaults(`{match: {kind: delete, path: "**/privateEndpointConnections/*", maxMatches: 1}, action: {operation: {stuck: true}}}`))
		must(s.DeleteService("shop/web"))
		s.Pass(time.Minute)
		must(s.AddService("blog/web", nil))
		s.Pass(time.Minute)
		must(s.addressed("blog/web"))
		s.Pass(8 * time.Minute)

		waits := fmt.Sprintf("private link service %s has yet to lose connection %s of private endpoint ", path.Base(is.ID), path.Base(connection))
		s.says("SyncLoadBalancerFailed", waits)
		var svc corev1.Service
		must(s.people.Get(ctx, split("shop/web"), &svc))
		if c := meta.FindStatusCondition(svc.Status.Conditions, "weir.dev/PrivateLinkService"); c == nil || c.Reason != "Waits" || !strings.HasPrefix(c.Message, waits) {
			must(fmt.Errorf("its condition is %+v, want that it waits: %q", c, waits))
		}
		balancer, _, _ := strings.Cut(frontend, "/frontendIPConfigurations/")
		if shown, _ := s.emu.Get(balancer); !bytes.Contains(shown, []byte(strconv.Quote(frontend))) {
			must(fmt.Errorf("frontend %s has gone from %s", frontend, shown))
		}

		body, _ := s.emu.Get(is.ID)
		must(s.emu.Put(is.ID, without(body, "privateEndpointConnections")))
		before := len(s.azureWrites())
		must(s.Settles(10 * time.Minute))
		if next := s.azureWrites()[before:]; len(next) < 2 || next[0] != "DELETE "+is.ID+": 202" || next[1] != "PUT "+balancer+": 200" {
			must(fmt.Errorf("at the end it writes %q, want that %s goes before its frontend", next, is.ID))
		}
	})
}

// A Service with pools of addresses gets an event with the azure.json key to change; after the
// change and conversion, it is published without further events.
func TestFromPoolsOfAddressesToAPublishedService(t *testing.T) {
	addresses := func(c *config.Config) {
		ofAddresses(c)
		c.DisableSubnetPolicies = true
	}
	stage(t, Options{Configure: addresses, Machines: true, Role: shipped.AzureRoles()}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", publishes))
		s.Pass(2 * time.Minute)
		must(s.addressed("shop/web"))
		s.says("PrivateLinkServiceRefused", `"true": want backend pools of network interfaces: Azure takes no Private Link Service in front of pools of addresses. Write loadBalancerBackendPoolConfigurationType: nodeIPConfiguration into azure.json`)
		for _, call := range s.emu.Calls(func(c armemu.Call) bool {
			return c.Method != http.MethodGet && strings.Contains(c.Path, "/privateLinkServices/")
		}) {
			must(fmt.Errorf("Azure was asked for it: %s %s", call.Method, call.Path))
		}
		must(s.Configure(opensSubnets))
		must(s.Settles(30 * time.Minute))
		if is := s.published("shop/web"); len(is) != 1 {
			must(fmt.Errorf("it is published by %v", is))
		}
	})
}

// addressed requires that a Service has an address.
func (s *Stage) addressed(name string) error {
	var svc corev1.Service
	err := s.people.Get(ctx, split(name), &svc)
	if err == nil && len(svc.Status.LoadBalancer.Ingress) == 0 {
		err = fmt.Errorf("%s has no address", name)
	}
	return err
}

// without removes a property from a resource.
func without(body []byte, property string) []byte {
	var all map[string]any
	must(json.Unmarshal(body, &all))
	properties, _ := all["properties"].(map[string]any)
	delete(properties, property)
	next, err := json.Marshal(all)
	must(err)
	return next
}
