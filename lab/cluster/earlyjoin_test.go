// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// membersOf returns the numbers of the nodes in the pool of a Service, Down ones with "!".
func (s *Stage) membersOf(pool string) string {
	body, _ := s.emulator.Get(network + "loadBalancers/" + clusterName)
	var b loadBalancer
	failOn(json.Unmarshal(body, &b))
	var members []string
	for _, p := range b.Properties.Pools {
		for _, a := range p.Properties.Addresses {
			if p.Name != pool {
				continue
			}
			var node int
			_, err := fmt.Sscanf(a.Properties.IP, "10.0.1.%d", &node)
			failOn(err)
			text := fmt.Sprint(node - 4)
			if a.Properties.Admin == "Down" {
				text += "!"
			}
			members = append(members, text)
		}
	}
	slices.Sort(members)
	return strings.Join(members, " ")
}

func (s *Stage) expectMembers(when, want string) {
	if got := s.membersOf("shop-web"); got != want {
		failOn(fmt.Errorf("%s: members %q, want %q", when, got, want))
	}
}

// newLocalService starts a cluster with a Local Service on node 0.
func newLocalService(s *Stage) {
	for n := range 4 {
		failOn(s.AddNode(n))
	}
	s.Start()
	failOn(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
	failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
	failOn(s.WaitInSync(10 * time.Minute))
	s.Sleep(5 * time.Minute)
}

// A node leaves after ten minutes without a ready endpoint, and joins again only once one is ready, even if another
// process takes over.
func TestANodeThatStartsIsAMemberForAWhile(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		newLocalService(s)
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: false}))
		s.Sleep(time.Minute)
		s.expectMembers("it starts", "0 1")
		s.KillProcess(0)
		s.Sleep(2 * time.Minute)
		s.expectMembers("another process runs", "0 1")
		s.Sleep(12 * time.Minute)
		s.expectMembers("it has never been ready", "0")
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
		s.Sleep(time.Minute)
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: false}))
		s.Sleep(time.Minute)
		s.expectMembers("its pod was created again", "0")
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		s.Sleep(time.Minute)
		s.expectMembers("it is ready", "0 1")
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: false}))
		s.Sleep(9 * time.Minute)
		s.expectMembers("it fails", "0 1")
		failOn(s.WaitInSync(10 * time.Minute))
		s.expectMembers("it fails for long", "0")
	})
}

// A node joins early only because of the health check of this Service.
func TestPoolsWithoutEarlyMembers(t *testing.T) {
	edit := func(change func(probes, rules []any) ([]any, []any)) func(s *Stage) {
		return func(s *Stage) {
			id := network + "loadBalancers/" + clusterName
			body, _ := s.emulator.Get(id)
			var b map[string]any
			failOn(json.Unmarshal(body, &b))
			properties := b["properties"].(map[string]any)
			probes, rules := change(properties["probes"].([]any), properties["loadBalancingRules"].([]any))
			properties["probes"], properties["loadBalancingRules"] = probes, rules
			body, err := json.Marshal(b)
			failOn(err)
			failOn(s.emulator.Put(id, body))
			failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { // Weir reads the load balancer
				setAnnotation(svc, annotation+"azure-load-balancer-tcp-idle-timeout", "7")
			}))
			s.Sleep(time.Minute)
		}
	}
	for name, tt := range map[string]struct {
		service func(*corev1.Service)
		change  func(s *Stage)
		early   bool
	}{
		"health check": {early: true},
		"no probe":     {service: func(svc *corev1.Service) { setAnnotation(svc, annotation+"port_80_no_probe_rule", "true") }},
		"TCP probe":    {service: func(svc *corev1.Service) { setAnnotation(svc, annotation+"port_80_health-probe_protocol", "tcp") }},
		"one of two": {service: func(svc *corev1.Service) {
			addPort(svc)
			setAnnotation(svc, annotation+"port_443_no_probe_rule", "true")
		}},
		"both": {service: addPort, early: true},
		"all count as up": {change: edit(func(probes, rules []any) ([]any, []any) {
			probes[0].(map[string]any)["properties"].(map[string]any)["noHealthyBackendsBehavior"] = "AllProbedUp"
			return probes, rules
		})},
		"a user's rule": {change: edit(func(probes, rules []any) ([]any, []any) {
			text, err := json.Marshal(rules[0])
			failOn(err)
			var r map[string]any
			failOn(json.Unmarshal(text, &r))
			r["name"] = "users"
			delete(r, "id")
			p := r["properties"].(map[string]any)
			delete(p, "probe")
			p["frontendPort"], p["backendPort"] = 9999, 9999
			return probes, append(rules, r)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			runStage(t, Options{}, func(s *Stage) {
				newLocalService(s)
				if tt.service != nil {
					failOn(s.ChangeService("shop/web", tt.service))
					s.Sleep(2 * time.Minute)
				}
				if tt.change != nil {
					tt.change(s)
				}
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: false}))
				s.Sleep(time.Minute)
				s.expectMembers("it starts", map[bool]string{true: "0 1", false: "0"}[tt.early])
			})
		})
	}
}

func addPort(svc *corev1.Service) {
	svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "tcp-443", Port: 443, Protocol: corev1.ProtocolTCP})
}
