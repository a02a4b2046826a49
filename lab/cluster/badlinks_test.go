// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/lab/armemu"
)

const someSubscription = "11111111-1111-1111-1111-111111111111"

// badLink is an invalid annotation value.
type badLink struct {
	field string // annotation name after azure-pls-
	value string
	shown string // part of the value shown in the event; empty: all
	want  string // part of the hint
}

var badLinks = []badLink{
	{"create", "yes", "", `want "true" or "false"`},
	{"name", "-x", "", "want the name of a Private Link Service"},
	{"name", "a/b", "", "want the name of a Private Link Service"},
	{"name", strings.Repeat("x", 81), strings.Repeat("x", 80) + "…", "want the name of a Private Link Service"},
	{"resource-group", "a/b", "", "want the name of a resource group"},
	{"ip-configuration-subnet", "/subscriptions/s", "", "want the name of a subnet of the cluster's virtual network"},
	{"ip-configuration-ip-address-count", "0", "", "want a whole number from 1 to 8"},
	{"ip-configuration-ip-address-count", "9", "", "want a whole number from 1 to 8"},
	{"ip-configuration-ip-address-count", "two", "", "want a whole number from 1 to 8"},
	{"ip-configuration-ip-address", "10.0.0.77 10.0.0.78", "", "want no more addresses than"},
	{"ip-configuration-ip-address", "10.0.0.77,10.0.0.78", "", "want IPv4 addresses that are separated by spaces"},
	{"ip-configuration-ip-address", "fd00::7", "", "want IPv4 addresses"},
	{"fqdns", "a.example.com,b.example.com", "", "want names such as web.example.com"},
	{"fqdns", "*.example.com", "", "want names such as web.example.com"},
	{"proxy-protocol", "on", "", `want "true" or "false"`},
	{"visibility", "blue", "", "want ids of subscriptions"},
	{"visibility", "* " + someSubscription, "*", `or "*" alone`},
	{"auto-approval", "*", "", "want ids of subscriptions"},
	{"auto-approval", someSubscription, "", "azure-pls-visibility has, too"},
}

// requestLinkService makes a Service request a Private Link Service.
func requestLinkService(svc *corev1.Service) {
	setAnnotation(svc, annotation+"azure-pls-create", "true")
}

// openSubnets configures pools of interfaces, and subnets that allow Private Link Services.
func openSubnets(c *config.Config) {
	useInterfaces(c)
	c.DisableSubnetPolicies = true
}

// Each invalid annotation value causes one event with annotation, value and hint; nothing is
// written for a new or an already published Service.
func TestABadValueIsOneEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, bad := range badLinks {
		t.Run(bad.field+" "+bad.value[:min(len(bad.value), 20)], func(t *testing.T) {
			runStage(t, Options{Configure: openSubnets}, func(s *Stage) {
				failOn(s.AddNode(0))
				s.Start()
				failOn(s.AddService("shop/web", requestLinkService))
				failOn(s.WaitInSync(10 * time.Minute))
				s.Sleep(time.Minute)
				before, reported := s.azureWrites(), len(s.eventsOf("web"))
				spoil := func(svc *corev1.Service) {
					requestLinkService(svc)
					setAnnotation(svc, annotation+"azure-pls-"+bad.field, bad.value)
				}
				failOn(s.ChangeService("shop/web", spoil))
				failOn(s.AddService("shop/api", spoil))
				for _, name := range []string{"shop/web", "shop/api"} { // reconciled again
					s.Sleep(30 * time.Minute)
					failOn(s.ChangeService(name, func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
				}
				s.Sleep(30 * time.Minute)
				if after := s.azureWrites(); len(after) != len(before) {
					failOn(fmt.Errorf("written are %q", after[len(before):]))
				}
				failOn(s.expectRejectedOnce("web", reported, bad))
				failOn(s.expectRejectedOnce("api", 0, bad))
				failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-"+bad.field, "") }))
				failOn(s.DeleteService("shop/api"))
				failOn(s.WaitInSync(10 * time.Minute))
			})
		})
	}
}

// expectRejectedOnce requires exactly one new event, which names the invalid annotation.
func (s *Stage) expectRejectedOnce(name string, before int, bad badLink) error {
	events := s.eventsOf(name)
	begins := fmt.Sprintf("Error syncing load balancer: %sazure-pls-%s is %q: ", annotation, bad.field, cmp.Or(bad.shown, bad.value))
	refusals := 0
	var texts []string
	for _, e := range events {
		texts = append(texts, fmt.Sprintf("%d %s %s", e.Count, e.Type, e.Message))
		if e.Type == corev1.EventTypeWarning && e.Count == 1 && strings.HasPrefix(e.Message, begins) && strings.Contains(e.Message, bad.want) {
			refusals++
		}
	}
	if len(events) != before+1 || refusals != 1 {
		return fmt.Errorf("%s had %d events before, and has %q: want one more, with %q and %q", name, before, texts, begins, bad.want)
	}
	return nil
}

func (s *Stage) eventsOf(name string) []corev1.Event {
	f, err := s.readObjects()
	failOn(err)
	var events []corev1.Event
	for _, e := range f.events {
		if e.InvolvedObject.Kind == "Service" && e.InvolvedObject.Name == name {
			events = append(events, e)
		}
	}
	return events
}

// azureWrites returns the write requests to Azure.
func (s *Stage) azureWrites() []string {
	var writes []string
	for _, c := range s.emulator.Calls(func(c armemu.Call) bool { return c.Method != http.MethodGet }) {
		writes = append(writes, fmt.Sprintf("%s %s: %d", c.Method, c.Path, c.Status))
	}
	return writes
}
