// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/lab/armemu"
)

// toStandard has Weir migrate what is Basic.
func toStandard(c *config.Config) { c.LoadBalancerSKU = "standard" }

// basicService is a Service that a Basic load balancer serves, with its address there.
type basicService struct {
	key      string
	internal bool
	method   string // how the public IP, or the private address, is allocated
}

// basics are those of each story: public and private addresses, Dynamic and Static.
func basics() []basicService {
	return []basicService{
		{"shop/web", false, "Dynamic"}, {"shop/api", false, "Static"}, {"blog/web", false, "Dynamic"},
		{"shop/db", true, "Dynamic"}, {"blog/db", true, "Static"}, {"shop/queue", true, "Dynamic"}, {"blog/queue", true, "Dynamic"}, {"blog/cache", true, "Dynamic"},
	}
}

// addBasic makes the Services, and load balancers of SKU Basic as the Azure cloud provider has left them, with
// the machines of these nodes behind them.
func (s *Stage) addBasic(nodes ...int) error {
	pools, err := s.addBasicBalancers(basics())
	if err != nil {
		return err
	}
	if err := s.seed(network+"loadBalancers/"+outbound, map[string]any{
		"location": region, "sku": map[string]any{"name": "Standard"}, "properties": map[string]any{"backendAddressPools": []any{map[string]any{"name": "all"}}},
	}); err != nil {
		return err
	}
	return s.behind(append(pools, idOf(outboundPool)), nodes)
}

// addBasicBalancers makes the Services, and the load balancers with a rule for each, and returns their pools.
func (s *Stage) addBasicBalancers(of []basicService) (pools []any, err error) {
	frontends, rules := map[bool][]any{}, map[bool][]any{}
	for n, b := range of {
		if err := s.AddService(b.key, func(svc *corev1.Service) {
			if b.internal {
				setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
			}
		}); err != nil {
			return nil, err
		}
		svc := &corev1.Service{}
		if err := s.people.Get(ctx, split(b.key), svc); err != nil {
			return nil, err
		}
		ip, front := fmt.Sprintf("10.0.9.%d", 10+n), map[string]any{"name": owner(svc)}
		if b.internal {
			front["properties"] = map[string]any{"subnet": idOf(vnetID + "/subnets/nodes"), "privateIPAllocationMethod": b.method, "privateIPAddress": ip, "privateIPAddressVersion": "IPv4"}
		} else {
			ip = fmt.Sprintf("198.18.9.%d", 10+n)
			id := network + "publicIPAddresses/" + publicIPOf(svc, corev1.IPv4Protocol)
			if err := s.seed(id, map[string]any{
				"location": region, "sku": map[string]any{"name": "Basic"}, "tags": map[string]any{"k8s-azure-service": b.key, "k8s-azure-cluster-name": clusterName},
				"properties": map[string]any{"publicIPAllocationMethod": b.method, "ipAddress": ip, "publicIPAddressVersion": "IPv4"},
			}); err != nil {
				return nil, err
			}
			front["properties"] = map[string]any{"publicIPAddress": idOf(id)}
		}
		frontends[b.internal] = append(frontends[b.internal], front)
		at := network + "loadBalancers/" + balancerOf(b.internal)
		rules[b.internal] = append(rules[b.internal], map[string]any{"name": owner(svc) + "-TCP-80", "properties": map[string]any{
			"protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true,
			"frontendIPConfiguration": idOf(at + "/frontendIPConfigurations/" + owner(svc)), "backendAddressPool": idOf(at + "/backendAddressPools/" + clusterName),
		}})
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
		if err := s.people.Status().Update(ctx, svc); err != nil {
			return nil, err
		}
	}
	for internal, list := range frontends {
		id := network + "loadBalancers/" + balancerOf(internal)
		if err := s.seed(id, map[string]any{"location": region, "sku": map[string]any{"name": "Basic"}, "properties": map[string]any{
			"frontendIPConfigurations": list, "loadBalancingRules": rules[internal], "backendAddressPools": []any{map[string]any{"name": clusterName}},
		}}); err != nil {
			return nil, err
		}
		pools = append(pools, idOf(id+"/backendAddressPools/"+clusterName))
	}
	return pools, nil
}

func balancerOf(internal bool) string {
	if internal {
		return clusterName + "-internal"
	}
	return clusterName
}

func idOf(id string) map[string]any { return map[string]any{"id": id} }

// behind has the machines of nodes, and the models of their scale sets, be in these pools alone.
func (s *Stage) behind(pools []any, nodes []int) error {
	for _, n := range nodes {
		v4, v6 := addressesOf(n)
		in := func(v4, v6 string) map[string]any {
			p := profile(v4, v6)
			configs := p["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"].([]any)
			configs[0].(map[string]any)["properties"].(map[string]any)["loadBalancerBackendAddressPools"] = pools
			return p
		}
		set := s.setOf(n)
		if set == "" {
			configs := in(v4, v6)["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"]
			if err := s.seed(network+"networkInterfaces/"+nodeName(n), map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": configs}}); err != nil {
				return err
			}
			continue
		}
		if err := s.seed(compute+"virtualMachineScaleSets/"+set, map[string]any{"location": region, "properties": map[string]any{
			"orchestrationMode": "Uniform", "upgradePolicy": map[string]any{"mode": scaleSets[set]}, "virtualMachineProfile": map[string]any{"networkProfile": in("", "")},
		}}); err != nil {
			return err
		}
		if err := s.seed(s.machineID(n), map[string]any{"location": region, "properties": map[string]any{"networkProfileConfiguration": in(v4, v6)}}); err != nil {
			return err
		}
	}
	return nil
}

// migrated returns what is not as it was, or not Standard.
func (s *Stage) migrated() error {
	c, err := s.observe()
	if err != nil {
		return err
	}
	for n, b := range basics() {
		svc := &corev1.Service{}
		if err := s.people.Get(ctx, split(b.key), svc); err != nil {
			return err
		}
		want := fmt.Sprintf("198.18.9.%d", 10+n)
		if b.internal {
			want = fmt.Sprintf("10.0.9.%d", 10+n)
		}
		if is := c.addressOf(labelOf(svc, corev1.IPv4Protocol)); is != want {
			return fmt.Errorf("%s had %s, and has %q", b.key, want, is)
		}
		if migrating(svc) {
			return fmt.Errorf("%s says that it migrates when that is over", b.key)
		}
	}
	if strings.Contains(string(s.emu.Snapshot()), `"Basic"`) {
		return errors.New("something is Basic")
	}
	return nil
}

// migrating reports whether the status of a Service says that its load balancer becomes a Standard one.
func migrating(svc *corev1.Service) bool {
	c := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeProgrammed)
	return c != nil && c.Reason == servicelb.WhyMigrating
}

// bothRoles are the role of load balancers and that of machines together, as they are shipped.
func bothRoles(t *testing.T) *armemu.Role {
	t.Helper()
	var both armemu.Role
	for _, name := range []string{"azure-role.json", "azure-role-interfaces.json"} {
		raw, err := os.ReadFile("../../config/" + name)
		if err != nil {
			t.Fatal(err)
		}
		role, err := armemu.ParseRole(raw)
		if err != nil {
			t.Fatal(err)
		}
		both.Actions = append(both.Actions, role.Actions...)
	}
	return &both
}

// A cluster whose load balancers are Basic has Standard ones, and each address stays: with machines of
// either kind of membership, whenever Weir dies.
func TestFromBasicToStandard(t *testing.T) {
	for name, pools := range map[string]func(*config.Config){"addresses": func(*config.Config) {}, "interfaces": ofInterfaces} {
		t.Run(name, func(t *testing.T) {
			stage(t, Options{Role: bothRoles(t), Configure: func(c *config.Config) { toStandard(c); pools(c) }}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				must(s.addBasic(0, 1, 2))
				s.Start()
				s.Pass(10 * time.Second)
				for _, b := range basics() {
					svc := &corev1.Service{}
					if must(s.people.Get(ctx, split(b.key), svc)); !migrating(svc) {
						t.Errorf("%s does not say that it migrates: %+v", b.key, svc.Status.Conditions)
					}
				}
				must(s.Settles(20 * time.Minute))
				must(s.migrated())
				s.Pass(settled)
				must(s.Rests(400))
			})
		})
	}
}

// Weir is killed at any time, and Azure fails.
func TestFromBasicToStandardThroughFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			stage(t, Options{Seed: seed, Configure: func(c *config.Config) { toStandard(c); ofInterfaces(c) }}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				must(s.addBasic(0, 1, 2))
				var faults []string
				for _, kind := range []string{"put", "delete", "list", "get"} {
					action := []string{"{status: 429, code: TooManyRequests, headers: {Retry-After: '7'}}", "{status: 500, code: InternalServerError}", "{drop: true}", "{drop: true, applied: true}"}[r.IntN(4)]
					faults = append(faults, fmt.Sprintf("{name: fault, match: {path: '**', kind: %s, probability: 0.2, maxMatches: 5}, action: %s}", kind, action))
				}
				must(s.AzureFaults(faults...))
				s.Start()
				for range 8 {
					s.Pass(time.Duration(r.IntN(20000)) * time.Millisecond)
					s.Kill(0)
				}
				s.EndFaults()
				must(s.Settles(30 * time.Minute))
				must(s.migrated())
			})
		})
	}
}

// deletes has a person delete a resource.
func (s *Stage) deletes(id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "https://management.azure.com"+id+"?api-version=2024-05-01", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+azureToken)
	resp, err := s.emu.Transport().Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Somebody has deleted the internal load balancer before: its addresses are taken again, as the Services
// show them, before anybody else gets them.
func TestABasicLoadBalancerThatIsGoneAlready(t *testing.T) {
	stage(t, Options{Configure: toStandard}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		must(s.addBasic())
		must(s.deletes(network + "loadBalancers/" + clusterName + "-internal"))
		s.Pass(time.Minute)
		s.Start()
		must(s.Settles(20 * time.Minute))
		must(s.migrated())
	})
}

// Nobody has said that load balancers are to be taken apart, or somebody has said that they are not.
func TestBasicLoadBalancersThatStay(t *testing.T) {
	for name, configure := range map[string]func(*config.Config){
		"no SKU": func(*config.Config) {},
		"manual": func(c *config.Config) { toStandard(c); c.LoadBalancerMigration = "Manual" },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, Options{Configure: configure}, func(s *Stage) {
				must(s.AddNode(0))
				must(s.addBasic(0))
				before := strings.Count(string(s.emu.Snapshot()), `"Basic"`)
				s.Start()
				s.Pass(10 * time.Minute)
				if after := strings.Count(string(s.emu.Snapshot()), `"Basic"`); after != before {
					must(fmt.Errorf("%d resources were Basic, and %d are", before, after))
				}
			})
		})
	}
}
