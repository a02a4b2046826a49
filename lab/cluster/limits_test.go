// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
)

// withPorts gives a Service n consecutive ports.
func withPorts(first, n int32) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		svc.Spec.Ports = nil
		for i := range n {
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: first + i, Protocol: corev1.ProtocolTCP})
		}
	}
}

func withTags(n int) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		tags := make([]string, n)
		for i := range tags {
			tags[i] = fmt.Sprintf("AzureCloud.%s%s%d", svc.Namespace, svc.Name, i)
		}
		setAnnotation(svc, annotation+"azure-allowed-service-tags", strings.Join(tags, ","))
	}
}

// partsOf counts the parts of each Service in a resource: load balancer rules by owner, security
// rules by address.
func (s *Stage) partsOf(id, list string, of func(name string, properties map[string]any) []string) map[string]int {
	items := map[string]int{}
	body, ok := s.emulator.Get(id)
	if !ok {
		return items
	}
	var resource struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	failOn(json.Unmarshal(body, &resource))
	var parts []struct {
		Name       string         `json:"name"`
		Properties map[string]any `json:"properties"`
	}
	if resource.Properties[list] != nil {
		failOn(json.Unmarshal(resource.Properties[list], &parts))
	}
	for _, p := range parts {
		for _, key := range of(p.Name, p.Properties) {
			items[key]++
		}
	}
	return items
}

// countRules counts the load balancing rules of each Service.
func (s *Stage) countRules() map[string]int {
	return s.partsOf(network+"loadBalancers/"+clusterName, "loadBalancingRules", func(name string, _ map[string]any) []string {
		owner, _, _ := strings.Cut(name, "-")
		return []string{s.serviceOwners[owner]}
	})
}

// securityRules counts Weir's security rules.
func (s *Stage) securityRules() int {
	return s.partsOf(securityGroup, "securityRules", func(name string, _ map[string]any) []string {
		if strings.HasPrefix(name, "k8s-azure-lb_") {
			return []string{"ours"}
		}
		return nil
	})["ours"]
}

// writtenIPs returns the ids of the public IPs created by Weir.
func (s *Stage) writtenIPs() map[string]bool {
	ips := map[string]bool{}
	for _, c := range s.emulator.Calls(armemu.ByKind(armemu.KindPut)) {
		if strings.Contains(strings.ToLower(c.Resource), "/publicipaddresses/") && c.Status < 300 {
			ips[c.Resource] = true
		}
	}
	return ips
}

// rejectionMessage returns the condition message of a Service without an address, or "".
func (s *Stage) rejectionMessage(key string) string {
	svc := &corev1.Service{}
	failOn(s.userClient.Get(ctx, parseKey(key), svc))
	if len(svc.Status.LoadBalancer.Ingress) > 0 {
		return ""
	}
	c := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeProgrammed)
	if a := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeAccepted); a != nil && a.Status != "True" {
		c = a
	}
	if c == nil {
		return "no condition"
	}
	return c.Message
}

func hasMessage(t *testing.T, about, got string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(got, text) {
			t.Errorf("%s: %q does not name %q", about, got, text)
		}
	}
}

// If one namespace requests all load balancer rules, a neighbor can still use its half, and a later
// one gets some.
func TestOneNamespaceLeavesRulesForOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, first := range []string{"the neighbor", "the attacker"} {
		t.Run(first+" is first", func(t *testing.T) {
			runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
				failOn(s.AddNode(0))
				s.Start()
				if first == "the neighbor" {
					failOn(s.AddService("blog/web", nil))
					s.Sleep(time.Minute)
				}
				failOn(s.AddService("shop/one", withPorts(1000, 748)))
				failOn(s.AddService("shop/two", withPorts(1000, 748)))
				s.Sleep(2 * time.Minute)
				if first == "the attacker" {
					failOn(s.AddService("blog/web", nil))
					s.Sleep(2 * time.Minute)
				}
				failOn(s.AddService("blog/more", withPorts(1000, 700)))
				s.Sleep(2 * time.Minute)
				present := s.countRules()
				if present["shop/one"]+present["shop/two"] != 748 || present["blog/web"] != 1 || present["blog/more"] != 700 {
					t.Errorf("rules: %v", present)
				}
				refused := s.rejectionMessage("shop/one") + s.rejectionMessage("shop/two")
				hasMessage(t, "the second Service", refused, "namespace shop would have 1496 load balancing rules in load balancer "+clusterName, "may have 750 (default: other namespaces use it, too, so half of 1500", service.MaxRules)
				if ips := len(s.writtenIPs()); ips != 3 {
					t.Errorf("%d public IPs: one was made for the Service that is refused", ips)
				}
				// A higher limit serves the waiting Service.
				failOn(s.DeleteService("blog/more"))
				s.Sleep(time.Minute)
				failOn(s.ChangeNamespace("shop", func(n *corev1.Namespace) { n.Annotations = map[string]string{service.MaxRules: "1500"} }))
				s.Sleep(time.Minute)
				if present := s.countRules(); present["shop/one"]+present["shop/two"] != 1496 {
					t.Errorf("rules with the annotation: %v", present)
				}
			})
		})
	}
}

// A Service that requests all security rules is rejected before it gets an address, and neighbors
// get their rules, in any order.
func TestOneNamespaceLeavesSecurityRulesForOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, first := range []string{"the neighbor", "the attacker"} {
		t.Run(first+" is first", func(t *testing.T) {
			runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
				failOn(s.AddNode(0))
				s.Start()
				if first == "the neighbor" {
					failOn(s.AddService("blog/web", withTags(2)))
					s.Sleep(time.Minute)
				}
				failOn(s.AddService("shop/one", withTags(1000)))
				s.Sleep(2 * time.Minute)
				if first == "the attacker" {
					failOn(s.AddService("blog/web", withTags(2)))
					s.Sleep(2 * time.Minute)
				}
				if n := s.securityRules(); n != 2 {
					t.Errorf("%d security rules", n)
				}
				if present := s.countRules(); present["shop/one"] != 0 || present["blog/web"] != 1 {
					t.Errorf("published without its restriction: %v", present)
				}
				hasMessage(t, "1,000 tags", s.rejectionMessage("shop/one"), "namespace shop would have 1000 rules in the security group", service.MaxSecurityRules)
				failOn(s.AddService("blog/more", withTags(498)))
				s.Sleep(2 * time.Minute)
				if n := s.securityRules(); n != 500 {
					t.Errorf("%d security rules, and the neighbor has not its half", n)
				}
			})
		})
	}
}

// Of Services created at once that exceed the limit together, none is exposed without its source
// restrictions.
func TestServicesThatExceedTheBoundTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("blog/web", withTags(2)))
		s.Sleep(time.Minute)
		var keys []string
		for i := range 4 {
			keys = append(keys, fmt.Sprint("shop/s", i))
			failOn(s.AddService(keys[i], func(svc *corev1.Service) {
				withTags(200)(svc)
				setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
				setAnnotation(svc, annotation+"azure-deny-all-except-load-balancer-source-ranges", "true")
			}))
		}
		s.Sleep(3 * time.Minute)
		published := s.partsOf(network+"loadBalancers/"+clusterName+"-internal", "frontendIPConfigurations", func(name string, _ map[string]any) []string {
			return []string{s.serviceOwners[name]}
		})
		if len(published) != 2 || s.securityRules() != 2+2*200+1 { // they share the deny rule
			t.Errorf("published: %v, with %d security rules", published, s.securityRules())
		}
		for _, key := range keys {
			if refused := s.rejectionMessage(key); (published[key] == 0) != (refused != "") {
				t.Errorf("%s: published %d times, says %q", key, published[key], refused)
			}
		}
		if refused := s.rejectionMessage("blog/web"); refused != "" {
			t.Errorf("the neighbor lost its address: %s", refused)
		}
	})
}
