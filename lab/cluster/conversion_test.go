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

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/test/shipped"
)

// ofAddresses configures pools of addresses explicitly.
func ofAddresses(c *config.Config) { c.BackendPoolType = config.NodeIP }

// Pools are converted from network interfaces to addresses and back: every rule has members at all
// times.
func TestFromOneKindOfPoolToTheOther(t *testing.T) {
	for about, first := range map[string]func(*config.Config){"from interfaces": ofInterfaces, "from addresses": ofAddresses} {
		t.Run(about, func(t *testing.T) {
			stage(t, Options{Configure: first, Machines: true, Watched: true}, func(s *Stage) {
				for n := range 4 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/web", nil))
				must(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				must(s.AddService("blog/own", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") }))
				must(s.Endpoints("shop/api", map[int]bool{1: true, 2: true}))
				must(s.Settles(10 * time.Minute))
				for range 2 {
					next := ofInterfaces
					if s.interfaces() {
						next = ofAddresses
					}
					must(s.Configure(next))
					s.Pass(time.Minute)
					must(s.Settles(20 * time.Minute))
				}
				must(s.AddNode(4))
				must(s.Settles(10 * time.Minute))
				s.Pass(settled)
				must(s.Rests(400))
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
		first := ofInterfaces
		if i%2 == 0 {
			first = ofAddresses
		}
		t.Run(every.String(), func(t *testing.T) {
			stage(t, Options{Configure: first, Machines: true, Watched: true, Seed: uint64(i)}, func(s *Stage) { //nolint:gosec // small
				for n := range 4 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/web", dual))
				must(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				must(s.Endpoints("shop/api", map[int]bool{1: true, 2: true}))
				must(s.Settles(10 * time.Minute))
				for range 2 {
					next := ofInterfaces
					if s.interfaces() {
						next = ofAddresses
					}
					must(s.Configure(next))
					for range 300 * time.Second / every {
						s.Pass(startsAgainAfter + every)
						s.Kill(0)
					}
					must(s.Settles(30 * time.Minute))
				}
				s.Pass(settled)
				must(s.Rests(400))
			})
		})
	}
}

// If azure.json is reverted halfway, rules return to their previous pool once it is filled again.
func TestSetBackHalfway(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for about, first := range map[string]func(*config.Config){"from interfaces": ofInterfaces, "from addresses": ofAddresses} {
		t.Run(about, func(t *testing.T) {
			for after := 5 * time.Second; after < 3*time.Minute; after += 17 * time.Second {
				stage(t, Options{Configure: first, Machines: true, Watched: true}, func(s *Stage) {
					for n := range 4 {
						must(s.AddNode(n))
					}
					s.Start()
					must(s.AddService("shop/web", nil))
					must(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
					must(s.Endpoints("shop/api", map[int]bool{1: true, 2: true}))
					must(s.Settles(10 * time.Minute))
					next := ofInterfaces
					if s.interfaces() {
						next = ofAddresses
					}
					must(s.Configure(next))
					s.Pass(after)
					must(s.Configure(first))
					must(s.Settles(20 * time.Minute))
				})
			}
		})
	}
}

// dual makes a Service dual-stack.
func dual(svc *corev1.Service) {
	svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
}

// events returns the messages of events with a reason.
func (s *Stage) events(reason string) string {
	f, err := s.facts()
	must(err)
	var all []string
	for _, e := range f.events {
		if e.Reason == reason {
			all = append(all, e.Message)
		}
	}
	return strings.Join(all, "\n")
}

// says requires a text in the events of a reason.
func (s *Stage) says(reason, text string) {
	if told := s.events(reason); !strings.Contains(told, text) {
		must(fmt.Errorf("told of %s: %q, want %q", reason, told, text))
	}
}

// A pool with foreign members is not converted until they are removed, and still follows the nodes;
// a dry run reports the conversion and prevents it.
func TestWhatKeepsAPoolOfTheOtherKind(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for about, first := range map[string]func(*config.Config){"of interfaces": ofInterfaces, "of addresses": ofAddresses} {
		t.Run(about, func(t *testing.T) {
			stage(t, Options{Configure: func(c *config.Config) { first(c); c.DriftSeconds = new(120) }, Machines: true, Watched: true}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/web", nil))
				must(s.Settles(10 * time.Minute))
				must(s.AddForeign(clusterName+"/"+clusterName, "10.0.9.9"))
				s.Pass(3 * time.Minute) // recorded as foreign
				next, is := ofInterfaces, "addresses to network interfaces"
				if s.interfaces() {
					next, is = ofAddresses, "network interfaces to addresses"
				}
				must(s.Configure(next))
				must(s.AddNode(3))
				s.Pass(5 * time.Minute)
				s.says("BackendPoolKept", "backend pool kubernetes of load balancer kubernetes does not go from one kind of members to the other, and stays as it is")
				if text := s.Log(); strings.Contains(text, "kubernetes_addresses") {
					must(errors.New("a pool that stands in was made"))
				}
				must(s.facesOf(4))

				must(s.ChangeService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, dryRun, "true") }))
				must(s.removeForeign(clusterName+"/"+clusterName, "10.0.9.9"))
				s.Pass(5 * time.Minute)
				s.says("DryRun", "~ pool kubernetes")
				must(s.AddService("shop/api", nil))
				s.Pass(5 * time.Minute)
				s.says("BackendPoolEmptying", "goes from "+is+"; until it is filled again, flows go by backend pool kubernetes_addresses")
				must(s.facesOf(4))
				must(s.ChangeService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, dryRun, "") }))
				must(s.Settles(20 * time.Minute))
			})
		})
	}
}

// facesOf requires that each rule has the given number of nodes, of either member type.
func (s *Stage) facesOf(nodes int) error {
	c, err := s.observe()
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
				if p.Name == r.Properties.Pool.name() && n != nodes {
					return fmt.Errorf("rule %s has %d nodes in pool %s, want %d", r.Name, n, p.Name, nodes)
				}
			}
		}
	}
	return nil
}

// A Private Link Service makes Azure reject addresses, so the interim pool never fills: new
// Services, ports and nodes keep using the pool of interfaces.
func TestWhatIsNewWhileThePoolOfTheOtherKindCannotGo(t *testing.T) {
	published := func(c *config.Config) { ofInterfaces(c); c.DisableSubnetPolicies = true }
	stage(t, Options{Configure: published, Machines: true, Watched: true, Role: shipped.AzureRoles()}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-create", "true") }))
		must(s.Settles(10 * time.Minute))
		must(s.Configure(ofAddresses))
		s.Pass(3 * time.Minute)
		must(s.AddService("blog/new", nil))
		must(s.ChangeService("shop/web", func(svc *corev1.Service) {
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "more", Port: 8443, NodePort: 30999, Protocol: corev1.ProtocolTCP})
		}))
		s.Pass(5 * time.Minute)
		must(s.AddNode(3))
		s.Pass(5 * time.Minute)
		c, err := s.observe()
		must(err)
		rules := 0
		for _, b := range c.balancers {
			rules += len(b.Properties.Rules)
		}
		if rules != 3 {
			t.Errorf("%d rules, want 3", rules)
		}
		must(s.facesOf(4))
	})
}

// Without the key in azure.json, pools of interfaces are not converted, and a Service whose policy
// changes keeps its pool type.
func TestWithoutTheKeyNothingIsConverted(t *testing.T) {
	stage(t, Options{Configure: ofInterfaces, Machines: true, Watched: true}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(10 * time.Minute))
		must(s.Configure(func(c *config.Config) { c.BackendPoolType = "" }))
		s.Pass(10 * time.Minute)
		must(s.facesOf(3))
		f, err := s.facts()
		must(err)
		for _, p := range f.pools {
			if text := spell(p.Status.Conditions); !strings.Contains(text, "loadBalancerBackendPoolConfigurationType") || !strings.Contains(text, "nodeIPConfiguration") {
				must(fmt.Errorf("BackendPool %s does not say which key decides: %s", p.Name, text))
			}
		}
		if strings.Contains(s.Log(), "kubernetes_addresses") {
			must(errors.New("a pool that stands in was made"))
		}
	})
}

// After a policy change a Service moves only when the new pool is completely filled, and not while
// its BackendPool is paused.
func TestAPolicyChangesWhenThePoolIsFilled(t *testing.T) {
	stage(t, Options{Watched: true}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Endpoints("shop/web", map[int]bool{0: true, 1: true}))
		must(s.Settles(5 * time.Minute))
		must(s.AzureFaults("{name: fault, match: {path: 'backendAddressPools/shop-web', kind: put, maxMatches: 3}, action: {status: 400, code: InvalidRequest, message: broken}}"))
		must(s.ChangeService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		s.Pass(20 * time.Second)
		must(s.facesOf(3))
		s.says("BackendPoolFilling", "flows stay where they are until backend pool shop-web of load balancer kubernetes holds its members")
		s.EndFaults()
		must(s.Settles(20 * time.Minute))
		must(s.facesOf(2))
		must(s.ChangeService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyCluster) }))
		must(s.Settles(5 * time.Minute))
	})
}

// removeForeign removes a foreign member like kubernetes/kubernetes.
func (s *Stage) removeForeign(of, ip string) error {
	delete(s.foreign, foreignMember{of, ip})
	nic := network + "networkInterfaces/theirs-" + ip
	if _, there := s.emu.Get(nic); there {
		return s.foreignInterface(outboundPool, ip)
	}
	balancer, name, _ := strings.Cut(of, "/")
	id := network + "loadBalancers/" + balancer + "/backendAddressPools/" + name
	raw, _ := s.emu.Get(id)
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
	return s.seed(id, body)
}

// A plan lists the pools to be converted and keeps their rules.
func TestThePlanOfAnotherKind(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for about, first := range map[string]func(*config.Config){"nodeIP": ofInterfaces, "nodeIPConfiguration": ofAddresses} {
		t.Run(about, func(t *testing.T) {
			var before planned
			stage(t, Options{Configure: first, Machines: true}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/web", nil))
				must(s.Settles(10 * time.Minute))
				before = s.planned()
			})
			p, err := app.Plan(t.Context(), before.options(t, fmt.Sprintf(`,"loadBalancerBackendPoolConfigurationType":%q`, about)))
			if err != nil {
				t.Fatal(err)
			}
			members := map[string]string{"nodeIP": "network interfaces → addresses", "nodeIPConfiguration": "addresses → network interfaces"}[about]
			if text := p.FormatText(false); p.Changes != 1 || p.PoolWrites != 2 || !strings.Contains(text, "~ pool kubernetes\n        members: "+members+"\n") ||
				!strings.Contains(text, "flows go by backend pool kubernetes_addresses") {
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
		schedule := Draw(seed, 40)
		schedule.Role, schedule.Machines = shipped.AzureRoles(), true
		both := *schedule.Role
		both.Actions = append(slices.Clone(both.Actions), "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/delete") // for users
		schedule.Role, schedule.Behaviour.InterfaceAdminState = &both, behaviour.Accepted
		change := Step{time.Second, "azure.json names the other kind", func(s *Stage) error {
			if s.interfaces() {
				return s.Configure(ofAddresses)
			}
			return s.Configure(ofInterfaces)
		}}
		for i := range 1 + seed%2 {
			schedule.Steps = slices.Insert(schedule.Steps, len(schedule.Steps)*int(i+1)/3, change) //nolint:gosec // small
		}
		var log string
		var err error
		synctest.Test(t, func(*testing.T) { log, err = Play(schedule, synctest.Wait) })
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			if *seeds == 1 {
				t.Log(log)
			}
		}
	}
}
