// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/lab/armemu"
)

// azureRule is a rule of Azure that something outside of Weir makes Weir violate.
type azureRule struct {
	name string
	code string
	// advice is a part of the resolution.
	advice     string
	interfaces bool
	// object is the kind and name of the object with the event; writes is the number of rejected writes in two minutes.
	object    string
	maxWrites int
	// violate runs once the Service shop/first is served.
	violate func(s *Stage)
	// waits reports whether Azure still rejects what was requested.
	waits func(s *Stage) bool
}

const (
	nodePoolID = network + "loadBalancers/" + clusterName + "/backendAddressPools/" + clusterName
	intranet   = "/backendAddressPools/all"
)

func (s *Stage) mustPut(id, body string) {
	failOn(s.emulator.Put(id, []byte(body)))
}

// putSingleMachine adds a machine outside of the cluster, with its network interface in a pool.
func (s *Stage) putSingleMachine(name, pool, more string) {
	s.mustPut(network+"networkInterfaces/"+name, `{"location":"eastus","properties":{"ipConfigurations":[{"name":"four","properties":{"primary":true,"subnet":{"id":"`+vnetID+`/subnets/nodes"},
		"loadBalancerBackendAddressPools":[{"id":"`+pool+`"}]}}]}}`)
	s.mustPut(computeID+"virtualMachines/"+name, `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+network+`networkInterfaces/`+name+`"}]}`+more+`}}`)
}

// firstRule returns the ID of the probe and the backend port of the rule of shop/first.
func (s *Stage) firstRule() (probe string, backendPort float64) {
	failOn(s.editResource(network+"loadBalancers/"+clusterName, func(_, p map[string]any) {
		for _, r := range p["loadBalancingRules"].([]any) {
			rule := r.(map[string]any)
			owner, _, _ := strings.Cut(rule["name"].(string), "-")
			if s.serviceOwners[owner] == "shop/first" {
				of := rule["properties"].(map[string]any)
				probe, backendPort = of["probe"].(map[string]any)["id"].(string), of["backendPort"].(float64)
			}
		}
	}))
	return probe, backendPort
}

func (s *Stage) inNodePool(node int) bool {
	raw, _ := s.emulator.Get(nodePoolID)
	return strings.Contains(string(raw), "/"+nodeName(node)+"/ipConfigurations/")
}

func setHealthProbe(probe string) func(body, properties map[string]any) {
	return func(_, p map[string]any) {
		p["virtualMachineProfile"].(map[string]any)["networkProfile"].(map[string]any)["healthProbe"] = map[string]any{"id": probe}
	}
}

func azureRules() []azureRule {
	inSet := `,"availabilitySet":{"id":"` + computeID + `availabilitySets/blue"}`
	joins := func(node int) func(s *Stage) { return func(s *Stage) { failOn(s.AddNode(node)) } }
	return []azureRule{
		{
			name: "availability sets of a pool", code: "MaxAvailabilitySetsInLoadBalancerReached", advice: "create machines in availability sets or scale sets", interfaces: true, object: "BackendPool nodes.kubernetes", maxWrites: 3,
			violate: func(s *Stage) {
				for i := range 149 {
					s.putSingleMachine(fmt.Sprint("single-", i), nodePoolID, "")
				}
				failOn(s.AddNode(3))
			},
			waits: func(s *Stage) bool { return !s.inNodePool(3) },
		},
		{
			name: "another internal load balancer of an availability set", code: "AnotherInternalLoadBalancerExists", advice: "take the others of the set out of the pools of that load balancer", interfaces: true,
			object: "BackendPool nodes.kubernetes-internal", maxWrites: 3,
			violate: func(s *Stage) {
				s.mustPut(network+"loadBalancers/intranet", `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"in","properties":{"subnet":{"id":"`+vnetID+`/subnets/nodes"}}}],"backendAddressPools":[{"name":"all"}]}}`)
				s.putSingleMachine("theirs", network+"loadBalancers/intranet"+intranet, inSet)
				failOn(s.editResource(computeID+"virtualMachines/"+nodeName(0), func(_, p map[string]any) {
					p["availabilitySet"] = map[string]any{"id": computeID + "availabilitySets/blue"}
				}))
				failOn(s.AddService("shop/second", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") }))
			},
			waits: func(s *Stage) bool { return true },
		},
		{
			name: "backend port of a machine, known before", code: "", advice: "or enable floating IP for the Service", interfaces: true, object: "Service second", maxWrites: 0,
			violate: func(s *Stage) { s.addSamePort(true) },
			waits:   func(s *Stage) bool { return s.countRules()["shop/second"] == 0 },
		},
		{
			name: "backend port of a machine that joins", code: "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndIPConfig", advice: "or enable floating IP for the Service", interfaces: true, object: "BackendPool nodes.kubernetes", maxWrites: 3,
			violate: func(s *Stage) { s.addSamePort(false); failOn(s.AddNode(3)) },
			waits:   func(s *Stage) bool { return !s.inNodePool(3) },
		},
		{
			name: "health probe of a scale set that no rule uses", code: "CannotUseInactiveHealthProbe", advice: "change or remove healthProbe in the scale set's network profile", interfaces: true, object: "BackendPool nodes.kubernetes", maxWrites: 3,
			violate: func(s *Stage) {
				failOn(s.editResource(computeID+"virtualMachineScaleSets/blue", setHealthProbe(network+"loadBalancers/"+clusterName+"/probes/gone")))
				joins(1)(s)
			},
			waits: func(s *Stage) bool { return true },
		},
		{
			name: "health probe of a scale set is that of a Service that leaves", code: "CannotRemoveRuleUsedByProbeUsedByVMSS", advice: "change or remove healthProbe in the scale set's network profile", interfaces: true, object: "Service first", maxWrites: 6,
			violate: func(s *Stage) {
				probe, _ := s.firstRule()
				failOn(s.editResource(computeID+"virtualMachineScaleSets/blue", setHealthProbe(probe)))
				failOn(s.DeleteService("shop/first"))
			},
			waits: func(s *Stage) bool { return s.countRules()["shop/first"] == 1 },
		},
		{
			name: "a Global load balancer has the frontend", code: "NotAllowedToDeleteLoadBalancerWithFrontendIpConfigurationInUseByGlobalLB", advice: "remove the frontend from the backend pool of the Global load balancer", object: "Service first", maxWrites: 6,
			violate: func(s *Stage) { s.addGlobal(); failOn(s.DeleteService("shop/first")) },
			waits:   func(s *Stage) bool { return s.countRules()["shop/first"] == 1 },
		},
	}
}

// addSamePort adds a foreign pool and its rule: with node 0 and the backend port of shop/second, or with node 3 and that
// of shop/first.
func (s *Stage) addSamePort(before bool) {
	_, port := s.firstRule()
	if before {
		port = 30099
	}
	id := network + "loadBalancers/" + clusterName
	failOn(s.editResource(id, func(_, p map[string]any) {
		front := p["frontendIPConfigurations"].([]any)[0].(map[string]any)["id"]
		p["backendAddressPools"] = append(p["backendAddressPools"].([]any), map[string]any{"name": "theirs"})
		p["loadBalancingRules"] = append(p["loadBalancingRules"].([]any), map[string]any{"name": "theirs", "properties": map[string]any{
			"protocol": "Tcp", "frontendPort": 9999, "backendPort": port, "frontendIPConfiguration": map[string]any{"id": front},
			"backendAddressPool": map[string]any{"id": id + "/backendAddressPools/theirs"},
		}})
	}))
	node := 3
	if before {
		node = 0
	} else {
		failOn(s.createMachine(node))
	}
	failOn(s.editResource(network+"networkInterfaces/"+nodeName(node), func(_, p map[string]any) {
		config := p["ipConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)
		config["loadBalancerBackendAddressPools"] = append(config["loadBalancerBackendAddressPools"].([]any), map[string]any{"id": id + "/backendAddressPools/theirs"})
	}))
	if before {
		failOn(s.AddService("shop/second", func(svc *corev1.Service) { withNodePort(30099)(svc) }))
	}
}

// withNodePort disables floating IP, so that the backend port is the node port.
func withNodePort(port int32) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		setAnnotation(svc, annotation+"azure-disable-load-balancer-floating-ip", "true")
		svc.Spec.Ports[0].NodePort = port
	}
}

// addGlobal adds a Global load balancer with the frontend of shop/first in its pool.
func (s *Stage) addGlobal() {
	s.mustPut(network+"publicIPAddresses/global", `{"location":"eastus","sku":{"name":"Standard","tier":"Global"},"properties":{"publicIPAllocationMethod":"Static"}}`)
	var frontend string
	failOn(s.editResource(network+"loadBalancers/"+clusterName, func(_, p map[string]any) {
		for _, f := range p["frontendIPConfigurations"].([]any) {
			if owner, _, _ := strings.Cut(f.(map[string]any)["name"].(string), "-"); s.serviceOwners[owner] == "shop/first" {
				frontend = f.(map[string]any)["id"].(string)
			}
		}
	}))
	s.mustPut(network+"loadBalancers/global", `{"location":"eastus","sku":{"name":"Standard","tier":"Global"},"properties":{
		"frontendIPConfigurations":[{"name":"f","properties":{"publicIPAddress":{"id":"`+network+`publicIPAddresses/global"}}}],
		"backendAddressPools":[{"name":"p","properties":{"loadBalancerBackendAddresses":[{"name":"m","properties":{"loadBalancerFrontendIPConfiguration":{"id":"`+frontend+`"}}}]}}]}}`)
}

// A write that Azure rejects by one of these rules is repeated by the back-off alone. The requesting object gets the code and
// what to do in one event, and Services of other namespaces still change.
func TestRulesOfAzureThatOthersMakeWeirViolate(t *testing.T) {
	for _, tt := range azureRules() {
		t.Run(tt.name, func(t *testing.T) {
			opts := Options{}
			if tt.interfaces {
				opts.Configure = useInterfaces
			}
			runStage(t, opts, func(s *Stage) {
				failOn(s.AddNode(0))
				s.Start()
				failOn(s.AddService("shop/first", withNodePort(30080)))
				failOn(s.AddService("blog/web", nil))
				failOn(s.SetEndpoints("shop/first", map[int]bool{0: true}))
				failOn(s.WaitInSync(5 * time.Minute))
				s.Sleep(5 * time.Minute)
				s.emulator.ClearCalls()
				tt.violate(s)
				s.Sleep(time.Minute)
				failOn(s.ChangeService("blog/web", func(svc *corev1.Service) {
					svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "more", Port: 81, Protocol: corev1.ProtocolTCP})
				}))
				s.Sleep(time.Minute)
				s.checkRejected(t, tt)
				if rules := s.countRules()["blog/web"]; rules != 2 {
					t.Errorf("the neighbor has %d rules", rules)
				}
				if !tt.waits(s) {
					t.Error("Azure accepted it")
				}
			})
		})
	}
}

func (s *Stage) checkRejected(t *testing.T, tt azureRule) {
	t.Helper()
	rejected := 0
	for _, c := range s.emulator.Calls() {
		if c.Status == http.StatusBadRequest && (c.Method == http.MethodPut || c.Method == http.MethodPatch || c.Method == http.MethodDelete) {
			rejected++
		}
	}
	if rejected > tt.maxWrites || rejected == 0 && tt.code != "" {
		t.Errorf("%d rejected writes", rejected)
	}
	f, err := s.readObjects()
	failOn(err)
	found, times := false, map[string]int{}
	for _, e := range f.events {
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		if e.InvolvedObject.Kind+" "+e.InvolvedObject.Name == tt.object && strings.Contains(e.Message, tt.code) && strings.Contains(e.Message, tt.advice) {
			found = true
		}
		of := e.InvolvedObject.Kind + " " + e.InvolvedObject.Name + " " + e.Reason
		if times[of]++; times[of] > 1 {
			t.Errorf("%d events %s", times[of], of)
		}
		if e.InvolvedObject.Namespace == "blog" && e.Reason != "SecurityGroupHasNoEffect" {
			t.Errorf("the neighbor got %s: %s", e.Reason, e.Message)
		}
	}
	if !found {
		t.Errorf("no event with %s %q at %s", tt.code, tt.advice, tt.object)
		for _, e := range f.events {
			if e.Type == corev1.EventTypeWarning {
				t.Logf("%s %s %s x%d: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Count, e.Message)
			}
		}
	}
}

// A load balancer of another kind under the name in azure.json is left alone, and the Service has the reason.
func TestALoadBalancerOfAnotherKind(t *testing.T) {
	for kind, tt := range map[string]struct{ sku, want string }{
		"Service": {`{"name":"Service"}`, "is of SKU Service, and Weir writes Standard ones only"},
		"Gateway": {`{"name":"Gateway"}`, "is of SKU Gateway, and Weir writes Standard ones only"},
		"Global":  {`{"name":"Standard","tier":"Global"}`, "is of tier Global, and its pools hold frontends of other load balancers"},
	} {
		t.Run(kind, func(t *testing.T) {
			runStage(t, Options{Configure: func(c *config.Config) { disableDrift(c) }}, func(s *Stage) {
				failOn(s.AddNode(0))
				s.mustPut(network+"loadBalancers/"+clusterName, `{"location":"eastus","sku":`+tt.sku+`,"properties":{}}`)
				s.Start()
				failOn(s.AddService("shop/web", nil))
				s.Sleep(2 * time.Minute)
				hasMessage(t, "the Service", s.rejectionMessage("shop/web"), tt.want, "name another load balancer in azure.json")
				s.emulator.ClearCalls() // a public IP may have been made before the load balancer was read
				failOn(s.AddService("shop/more", nil))
				s.Sleep(2 * time.Minute)
				hasMessage(t, "the next Service", s.rejectionMessage("shop/more"), tt.want)
				if n := len(s.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))); n > 0 {
					t.Errorf("%d writes", n)
				}
			})
		})
	}
}
