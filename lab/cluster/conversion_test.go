// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/test/shipped"
)

// useAddresses configures pools of addresses explicitly.
func useAddresses(c *config.Config) { c.BackendPoolType = config.NodeIP }

// Pools are converted from network interfaces to addresses and back: every rule has members at all
// times.
func TestFromOneKindOfPoolToTheOther(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for about, first := range map[string]func(*config.Config){"from interfaces": useInterfaces, "from addresses": useAddresses} {
		t.Run(about, func(t *testing.T) {
			runStage(t, Options{Configure: first, Machines: true, CheckRuleMembers: true}, func(s *Stage) {
				for n := range 4 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/web", nil))
				failOn(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				failOn(s.AddService("blog/own", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") }))
				failOn(s.SetEndpoints("shop/api", map[int]bool{1: true, 2: true}))
				failOn(s.WaitInSync(10 * time.Minute))
				for range 2 {
					next := useInterfaces
					if s.hasInterfaces() {
						next = useAddresses
					}
					failOn(s.Configure(next))
					s.Sleep(time.Minute)
					failOn(s.WaitInSync(20 * time.Minute))
				}
				failOn(s.AddNode(4))
				failOn(s.WaitInSync(10 * time.Minute))
				s.Sleep(settleTime)
				failOn(s.CheckIdleHour(400))
			})
		})
	}
}

// Repeatedly killed during the conversion, the next process continues.
func TestKilledFromOneKindToTheOther(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for i, every := range []time.Duration{3 * time.Second, 7 * time.Second, 11 * time.Second, 23 * time.Second, 41 * time.Second} {
		first := useInterfaces
		if i%2 == 0 {
			first = useAddresses
		}
		t.Run(every.String(), func(t *testing.T) {
			runStage(t, Options{Configure: first, Machines: true, CheckRuleMembers: true, Seed: uint64(i)}, func(s *Stage) { //nolint:gosec // small
				for n := range 4 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/web", setDualStack))
				failOn(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				failOn(s.SetEndpoints("shop/api", map[int]bool{1: true, 2: true}))
				failOn(s.WaitInSync(10 * time.Minute))
				for range 2 {
					next := useInterfaces
					if s.hasInterfaces() {
						next = useAddresses
					}
					failOn(s.Configure(next))
					for range 300 * time.Second / every {
						s.Sleep(restartDelay + every)
						s.KillProcess(0)
					}
					failOn(s.WaitInSync(30 * time.Minute))
				}
				s.Sleep(settleTime)
				failOn(s.CheckIdleHour(400))
			})
		})
	}
}

// If azure.json is reverted halfway, rules return to their previous pool once it is filled again.
func TestSetBackHalfway(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for about, first := range map[string]func(*config.Config){"from interfaces": useInterfaces, "from addresses": useAddresses} {
		t.Run(about, func(t *testing.T) {
			for after := 5 * time.Second; after < 3*time.Minute; after += 17 * time.Second {
				runStage(t, Options{Configure: first, Machines: true, CheckRuleMembers: true}, func(s *Stage) {
					for n := range 4 {
						failOn(s.AddNode(n))
					}
					s.Start()
					failOn(s.AddService("shop/web", nil))
					failOn(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
					failOn(s.SetEndpoints("shop/api", map[int]bool{1: true, 2: true}))
					failOn(s.WaitInSync(10 * time.Minute))
					next := useInterfaces
					if s.hasInterfaces() {
						next = useAddresses
					}
					failOn(s.Configure(next))
					s.Sleep(after)
					failOn(s.Configure(first))
					failOn(s.WaitInSync(20 * time.Minute))
				})
			}
		})
	}
}

func setDualStack(svc *corev1.Service) {
	svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
}

func (s *Stage) events(reason string) string {
	f, err := s.readObjects()
	failOn(err)
	var events []string
	for _, e := range f.events {
		if e.Reason == reason {
			events = append(events, e.Message)
		}
	}
	return strings.Join(events, "\n")
}

func (s *Stage) expectEvent(reason, text string) {
	if reported := s.events(reason); !strings.Contains(reported, text) {
		failOn(fmt.Errorf("told of %s: %q, want %q", reason, reported, text))
	}
}

// A pool with foreign members is not converted until they are removed, and still follows the nodes;
// a dry run reports the conversion and prevents it.
func TestRetainedPoolOfAnotherKind(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for about, first := range map[string]func(*config.Config){"of interfaces": useInterfaces, "of addresses": useAddresses} {
		t.Run(about, func(t *testing.T) {
			runStage(t, Options{Configure: func(c *config.Config) { first(c); c.DriftSeconds = new(120) }, Machines: true, CheckRuleMembers: true}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/web", nil))
				failOn(s.WaitInSync(10 * time.Minute))
				failOn(s.AddForeign(clusterName+"/"+clusterName, "10.0.9.9"))
				s.Sleep(3 * time.Minute) // recorded as foreign
				next, got := useInterfaces, "addresses to network interfaces"
				if s.hasInterfaces() {
					next, got = useAddresses, "network interfaces to addresses"
				}
				failOn(s.Configure(next))
				failOn(s.AddNode(3))
				s.Sleep(5 * time.Minute)
				s.expectEvent("BackendPoolKept", "backend pool kubernetes of load balancer kubernetes does not change its kind of members, and remains unchanged")
				if text := s.Log(); strings.Contains(text, "kubernetes_addresses") {
					failOn(errors.New("a pool that stands in was made"))
				}
				failOn(s.checkRuleNodes(4))

				failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, dryRun, "true") }))
				failOn(s.removeForeign(clusterName+"/"+clusterName, "10.0.9.9"))
				s.Sleep(5 * time.Minute)
				s.expectEvent("DryRun", "~ pool kubernetes")
				failOn(s.AddService("shop/api", nil))
				s.Sleep(5 * time.Minute)
				s.expectEvent("BackendPoolEmptying", "changes from "+got+"; until it is filled again, flows use backend pool kubernetes_addresses")
				failOn(s.checkRuleNodes(4))
				failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, dryRun, "") }))
				failOn(s.WaitInSync(20 * time.Minute))
			})
		})
	}
}

// checkRuleNodes requires that each rule has the given number of nodes, of either member type.
func (s *Stage) checkRuleNodes(nodes int) error {
	c, err := s.readAzure()
	if err != nil {
		return err
	}
	for _, b := range c.balancers {
		for _, r := range b.Properties.Rules {
			for _, p := range b.Properties.Pools {
				n := 0
				for _, m := range p.Properties.Addresses {
					if !s.isForeign(b.Name+"/"+p.Name, m.Properties.IP) {
						n++
					}
				}
				if p.Name == r.Properties.Pool.lastSegment() && n != nodes {
					return fmt.Errorf("rule %s has %d nodes in pool %s, want %d", r.Name, n, p.Name, nodes)
				}
			}
		}
	}
	return nil
}

// A Private Link Service makes Azure reject addresses, so the interim pool never fills: new
// Services, ports and nodes keep using the pool of interfaces.
func TestNewServicesDuringAConversion(t *testing.T) {
	published := func(c *config.Config) { useInterfaces(c); c.DisableSubnetPolicies = true }
	runStage(t, Options{Configure: published, Machines: true, CheckRuleMembers: true, Role: shipped.AzureRoles()}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-create", "true") }))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.Configure(useAddresses))
		s.Sleep(3 * time.Minute)
		failOn(s.AddService("blog/new", nil))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) {
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "more", Port: 8443, NodePort: 30999, Protocol: corev1.ProtocolTCP})
		}))
		s.Sleep(5 * time.Minute)
		failOn(s.AddNode(3))
		s.Sleep(5 * time.Minute)
		c, err := s.readAzure()
		failOn(err)
		rules := 0
		for _, b := range c.balancers {
			rules += len(b.Properties.Rules)
		}
		if rules != 3 {
			t.Errorf("%d rules, want 3", rules)
		}
		failOn(s.checkRuleNodes(4))
	})
}

// Without the key in azure.json, pools of interfaces are not converted, and nodes that join later get into them.
func TestWithoutTheKeyNothingIsConverted(t *testing.T) {
	runStage(t, Options{Configure: useInterfaces, Machines: true, CheckRuleMembers: true}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.Configure(func(c *config.Config) { c.BackendPoolType = "" }))
		s.Sleep(10 * time.Minute)
		failOn(s.checkRuleNodes(3))
		failOn(s.AddNode(3))
		s.Sleep(10 * time.Minute)
		failOn(s.checkRuleNodes(4))
		f, err := s.readObjects()
		failOn(err)
		if len(f.pools) == 0 {
			failOn(errors.New("there is no BackendPool"))
		}
		for _, p := range f.pools {
			if p.Spec.Membership != v1alpha1.MembershipNetworkInterface || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionSynced) {
				failOn(fmt.Errorf("BackendPool %s has membership %q: %s", p.Name, p.Spec.Membership, formatJSON(p.Status.Conditions)))
			}
		}
		if strings.Contains(s.Log(), "kubernetes_addresses") {
			failOn(errors.New("a pool that stands in was made"))
		}
	})
}

// After a policy change a Service moves only when the new pool is completely filled, and not while
// its BackendPool is paused.
func TestAPolicyChangesWhenThePoolIsFilled(t *testing.T) {
	runStage(t, Options{CheckRuleMembers: true}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		failOn(s.WaitInSync(5 * time.Minute))
		failOn(s.AzureFaults("{name: fault, match: {path: 'backendAddressPools/shop-web', kind: put, maxMatches: 3}, action: {status: 400, code: InvalidRequest, message: broken}}"))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		s.Sleep(20 * time.Second)
		failOn(s.checkRuleNodes(3))
		s.expectEvent("BackendPoolFilling", "flows use the previous pool until backend pool shop-web of load balancer kubernetes has its members")
		s.EndFaults()
		failOn(s.WaitInSync(20 * time.Minute))
		failOn(s.checkRuleNodes(2))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyCluster) }))
		failOn(s.WaitInSync(5 * time.Minute))
	})
}

// With localServicePools a Local Service moves from its own pool to that of all nodes and back, each time when the new
// pool is completely filled. Without the key, its rules retain the pool that they have, and nothing is written.
func TestLocalServicesChangeTheirPools(t *testing.T) {
	runStage(t, Options{Configure: useAddresses, CheckRuleMembers: true}, func(s *Stage) {
		configure := func(pools config.LocalServicePools) {
			s.localPools = pools
			failOn(s.Configure(useAddresses))
		}
		retains := func(nodes int) {
			before := s.emulator.Stats()
			configure("")
			s.Sleep(20 * time.Minute)
			failOn(s.checkRuleNodes(nodes))
			if now := s.emulator.Stats(); now.Writes != before.Writes || now.Deletes != before.Deletes {
				failOn(fmt.Errorf("without the key %d writes and %d deletes", now.Writes-before.Writes, now.Deletes-before.Deletes))
			}
		}
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		failOn(s.WaitInSync(5 * time.Minute))
		failOn(s.checkRuleNodes(2))
		retains(2)
		configure(config.PoolsOfNodes)
		s.Sleep(5 * time.Minute)
		failOn(s.checkRuleNodes(3))
		if _, ok := s.emulator.Get(network + "loadBalancers/kubernetes/backendAddressPools/shop-web"); ok {
			failOn(errors.New("the Service's own pool is left"))
		}
		retains(3)
		failOn(s.AzureFaults("{name: fault, match: {path: 'backendAddressPools/shop-web', kind: put, maxMatches: 3}, action: {status: 400, code: InvalidRequest, message: broken}}"))
		configure(config.PoolsOwn)
		s.Sleep(20 * time.Second)
		failOn(s.checkRuleNodes(3))
		s.EndFaults()
		failOn(s.WaitInSync(20 * time.Minute))
		failOn(s.checkRuleNodes(2))
	})
}

// removeForeign removes a foreign member like kubernetes/kubernetes.
func (s *Stage) removeForeign(of, ip string) error {
	delete(s.foreign, foreignMember{of, ip})
	nic := network + "networkInterfaces/theirs-" + ip
	if _, ok := s.emulator.Get(nic); ok {
		return s.addForeignInterface(outboundPool, ip)
	}
	balancer, name, _ := strings.Cut(of, "/")
	id := network + "loadBalancers/" + balancer + "/backendAddressPools/" + name
	raw, _ := s.emulator.Get(id)
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	properties, _ := body["properties"].(map[string]any)
	addresses, _ := properties["loadBalancerBackendAddresses"].([]any)
	properties["loadBalancerBackendAddresses"] = slices.DeleteFunc(addresses, func(a any) bool {
		entry, _ := a.(map[string]any)
		return entry["name"] == "theirs-"+ip
	})
	return s.putResource(id, body)
}

// A plan lists the pools to be converted and keeps their rules.
func TestThePlanOfAnotherKind(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for about, first := range map[string]func(*config.Config){"nodeIP": useInterfaces, "nodeIPConfiguration": useAddresses} {
		t.Run(about, func(t *testing.T) {
			var before planned
			runStage(t, Options{Configure: first, Machines: true}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/web", nil))
				failOn(s.WaitInSync(10 * time.Minute))
				before = s.planned()
			})
			p, err := app.Plan(t.Context(), before.options(t, fmt.Sprintf(`,"loadBalancerBackendPoolConfigurationType":%q`, about)))
			if err != nil {
				t.Fatal(err)
			}
			members := map[string]string{"nodeIP": "network interfaces → addresses", "nodeIPConfiguration": "addresses → network interfaces"}[about]
			if text := p.FormatText(false); p.Changes != 1 || p.PoolWrites != 2 || !strings.Contains(text, "~ pool kubernetes\n        members: "+members+"\n") ||
				!strings.Contains(text, "flows use backend pool kubernetes_addresses") {
				t.Errorf("%d changes, %d writes of pools:\n%s", p.Changes, p.PoolWrites, text)
			}
		})
	}
}

// In random schedules, pools end with the configured member type.
func TestSeedsThatChangeTheKind(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	n := *seeds / 6
	for seed := *firstSeed; seed < *firstSeed+uint64(max(n, 2)); seed++ { //nolint:gosec // small
		schedule := NewSchedule(seed, 40)
		schedule.Role, schedule.Machines = shipped.AzureRoles(), true
		both := *schedule.Role
		both.Actions = append(slices.Clone(both.Actions), "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/delete") // for users
		schedule.Role, schedule.Behaviour.InterfaceAdminState = &both, behavior.Accepted
		change := Step{time.Second, "azure.json names the other kind", func(s *Stage) error {
			if s.hasInterfaces() {
				return s.Configure(useAddresses)
			}
			return s.Configure(useInterfaces)
		}}
		for i := range 1 + seed%2 {
			schedule.Steps = slices.Insert(schedule.Steps, len(schedule.Steps)*int(i+1)/3, change) //nolint:gosec // small
		}
		var log string
		var err error
		synctest.Test(t, func(*testing.T) { log, err = RunSchedule(schedule, synctest.Wait) })
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			if *seeds == 1 {
				t.Log(log)
			}
		}
	}
}
