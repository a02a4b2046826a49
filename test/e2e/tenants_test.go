// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
)

const (
	// attackSteps is the number of actions per seed.
	attackSteps = 30
	// maxWritesBefore is the maximum number of other writes before the neighbor's change.
	maxWritesBefore = 10
)

// One namespace has a tenant with the stock role edit and the right to create BackendPools. The
// neighbor in another one keeps its pools, rules, addresses, status and events, its next change is
// not delayed, and its resources are removed completely at the end.
func TestATenantReachesNothingOfAnother(t *testing.T) {
	runParallel(t)
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, armemu.Options{})
			b := l.neighbour()
			weir := l.controller("--leader-elect-namespace", "weir-system", "--cluster-name", l.namespace)
			before := b.renderInSync()
			a := b.attacker(rand.New(rand.NewPCG(seed, 14)))
			for step := range attackSteps {
				a.runAction()
				if step == 3 { // random actions
					for _, act := range []func() (string, error){a.shareAddress, a.closeNodes} {
						name, err := act()
						l.must(err)
						a.deeds = append(a.deeds, name)
					}
				}
				if step%10 == 9 {
					a.waitServed(step)
					b.checkUnchanged(before, a.deeds)
				}
			}
			b.checkPromptChange()
			a.deleteAll()
			b.checkUnchanged(b.renderInSync(), a.deeds)
			b.checkCleanup()
			if strings.Contains(weir.ReadOutput(), "panic") {
				t.Error("the controller panicked")
			}
		})
	}
}

// neighbour is the tenant that must not be affected.
type neighbour struct {
	*lab
	nodes []string
	// bound is an unmanaged load balancer with a foreign member in its pool.
	bound string
}

const foreignAddress = "10.9.9.9"

func (l *lab) neighbour() *neighbour {
	l.t.Helper()
	b := &neighbour{lab: l, bound: network + "/loadBalancers/" + l.namespace + "-terraform"}
	l.must(l.emulator.Put(securityGroup, []byte(`{"location":"eastus","properties":{"securityRules":[]}}`)))
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16","networkSecurityGroup":{"id":"`+securityGroup+`"}}}`)))
	l.must(l.emulator.Put(b.bound, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"theirs"}],"backendAddressPools":[
		{"name":"edge","properties":{"virtualNetwork":{"id":"`+vnet+`"},"loadBalancerBackendAddresses":[{"name":"theirs","properties":{"ipAddress":"`+foreignAddress+`"}}]}}]}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","subnetName":"nodes","location":"eastus","securityGroupName":"nsg","loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolDriftRepairIntervalInSeconds":5}`)
	for i := range 3 {
		b.nodes = append(b.nodes, l.node(fmt.Sprintf("n%d", i+1), fmt.Sprintf("10.0.0.%d", i+1)))
	}
	l.allow(l.namespace, l.namespace+"-terraform")
	l.createLoadBalancerService("web", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }, b.nodes[0])
	l.createLoadBalancerService("all", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster }, b.nodes[0])
	l.must(l.cluster.Create(l.t.Context(), &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: l.namespace},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef:   &v1alpha1.ServiceReference{Name: "web"},
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: l.namespace + "-terraform"}, PoolName: "edge",
		},
	}))
	return b
}

// allow permits a namespace to bind pools of an unmanaged load balancer.
func (l *lab) allow(namespace, balancer string) {
	l.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	l.must(l.cluster.Get(l.t.Context(), client.ObjectKeyFromObject(ns), ns))
	before := ns.DeepCopy()
	metav1.SetMetaDataAnnotation(&ns.ObjectMeta, "weir.dev/allowed-load-balancers", balancer)
	l.must(l.cluster.Patch(l.t.Context(), ns, client.MergeFrom(before)))
}

// picture is all that the neighbor has, in Azure and in the cluster, by id or name.
type picture map[string]string

// renderInSync returns the picture once everything is in sync.
func (n *neighbour) renderInSync() picture {
	n.t.Helper()
	n.ingress("web", 1)
	n.ingress("all", 1)
	var p picture
	n.eventually("the neighbour is in sync", func() error {
		p = n.picture()
		for _, pool := range []string{"web." + n.namespace, "edge"} {
			if got := p["state of "+pool]; got != v1alpha1.ReasonInSync {
				return fmt.Errorf("BackendPool %s is %q", pool, got)
			}
		}
		for _, name := range []string{"web", "all"} {
			if got := p["condition weir.dev/Programmed of "+name]; got != "True Programmed" {
				return fmt.Errorf("Service %s is programmed: %q", name, got)
			}
		}
		if p["pool of all"] == "[]" {
			return fmt.Errorf("no node is in the pool of all")
		}
		if p["security rules"] == "" {
			return fmt.Errorf("no security rule yet")
		}
		return nil
	})
	return p
}

// checkUnchanged waits for the picture; a temporary disturbance shows in the requested Azure deletions
// only.
func (n *neighbour) checkUnchanged(before picture, deeds []string) {
	n.t.Helper()
	defer func() {
		if n.t.Failed() {
			n.t.Logf("what the tenant did:\n%s", strings.Join(deeds, "\n"))
		}
	}()
	n.eventually("the neighbour has what it had", func() error {
		if diff := gocmp.Diff(before, n.picture()); diff != "" {
			return fmt.Errorf("before and after:\n%s", diff)
		}
		return nil
	})
	for name, id := range before {
		if !strings.HasPrefix(name, "id of") {
			continue
		}
		taken := n.emulator.Calls(func(c armemu.Call) bool {
			return c.Kind == armemu.KindDelete && strings.EqualFold(c.Resource, id) && c.Status < 300
		})
		if len(taken) > 0 {
			n.t.Errorf("%s was deleted: %s", name, id)
		}
	}
}

func (n *neighbour) picture() picture {
	n.t.Helper()
	p := picture{}
	var addresses []string
	for _, name := range []string{"web", "all"} {
		var s corev1.Service
		n.must(n.cluster.Get(n.t.Context(), key(n.namespace, name), &s))
		for _, in := range s.Status.LoadBalancer.Ingress {
			p["address of "+name] = in.IP
			addresses = append(addresses, in.IP)
		}
		for _, c := range s.Status.Conditions {
			p["condition "+c.Type+" of "+name] = string(c.Status) + " " + c.Reason
		}
		owner := n.owner(name)
		p["id of the public IP of "+name] = network + "/publicIPAddresses/" + n.namespace + "-" + owner
		for _, kind := range []string{"frontendIPConfigurations", "loadBalancingRules", "probes"} {
			p[kind+" of "+name] = n.owned(kind, owner)
		}
	}
	p["pool of web"] = fmt.Sprint(n.addresses(n.loadBalancer(), n.namespace+"-web"))
	p["pool of all"] = fmt.Sprint(n.addresses(n.loadBalancer(), n.namespace))
	p["pool of others"] = fmt.Sprint(n.addresses(n.bound, "edge"))
	p["security rules"] = n.securityRules(addresses)
	for _, pool := range n.pools() {
		p["state of "+pool.Name] = pool.Status.Conditions[slices.IndexFunc(pool.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSynced })].Reason
	}
	var events corev1.EventList
	n.must(n.cluster.List(n.t.Context(), &events, client.InNamespace(n.namespace)))
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			p["warning about "+e.InvolvedObject.Name+": "+e.Reason] = e.Message
		}
	}
	return p
}

// pools returns the neighbor's BackendPools with a status.
func (n *neighbour) pools() []v1alpha1.BackendPool {
	n.t.Helper()
	var list v1alpha1.BackendPoolList
	n.must(n.cluster.List(n.t.Context(), &list, client.InNamespace(n.namespace)))
	return slices.DeleteFunc(list.Items, func(p v1alpha1.BackendPool) bool {
		return !slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSynced })
	})
}

// owned returns the parts of a kind with an owner's name, without etags and back references.
func (n *neighbour) owned(kind, owner string) string {
	n.t.Helper()
	body, ok := n.emulator.Get(n.loadBalancer())
	if !ok {
		return ""
	}
	var shown struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	n.must(json.Unmarshal(body, &shown))
	var parts []map[string]any
	if raw := shown.Properties[kind]; raw != nil {
		n.must(json.Unmarshal(raw, &parts))
	}
	var names []string
	for _, part := range parts {
		name, _ := part["name"].(string)
		if !strings.HasPrefix(name, owner) {
			continue
		}
		delete(part, "etag")
		text, err := json.Marshal(part)
		n.must(err)
		names = append(names, string(text))
	}
	slices.Sort(names)
	return strings.Join(names, "\n")
}

// securityRules returns the security rules for each of these addresses; Services with equal sources
// share a rule.
func (n *neighbour) securityRules(addresses []string) string {
	n.t.Helper()
	body, _ := n.emulator.Get(securityGroup)
	var shown struct {
		Properties struct {
			Rules []struct {
				Properties struct {
					Access       string   `json:"access"`
					Protocol     string   `json:"protocol"`
					Source       string   `json:"sourceAddressPrefix"`
					Sources      []string `json:"sourceAddressPrefixes"`
					Destination  string   `json:"destinationAddressPrefix"`
					Destinations []string `json:"destinationAddressPrefixes"`
					Port         string   `json:"destinationPortRange"`
					Ports        []string `json:"destinationPortRanges"`
				} `json:"properties"`
			} `json:"securityRules"`
		} `json:"properties"`
	}
	n.must(json.Unmarshal(body, &shown))
	var rules []string
	for _, r := range shown.Properties.Rules {
		p := r.Properties
		for _, to := range append(p.Destinations, p.Destination) {
			atNodes := strings.HasPrefix(to, "10.0.0.") && slices.Contains(append(p.Ports, p.Port), "*")
			if to == "*" || strings.Contains(to, "/") || slices.Contains(addresses, to) || atNodes {
				rules = append(rules, fmt.Sprintf("%s %s from %v to %s at %v", p.Access, p.Protocol, append(p.Sources, p.Source), to, append(p.Ports, p.Port)))
			}
		}
	}
	slices.Sort(rules)
	return strings.Join(rules, "\n")
}

// checkPromptChange moves the neighbor's endpoint and counts the writes of others before it is in the
// pools.
func (n *neighbour) checkPromptChange() {
	n.t.Helper()
	last := n.emulator.Calls()
	since := last[len(last)-1].Seq
	n.move("web", n.nodes[1])
	n.becomes(n.namespace+"-web", "10.0.0.2")
	writes := n.emulator.Calls(func(c armemu.Call) bool { return c.Seq > since && c.Kind == armemu.KindPut })
	if at := slices.IndexFunc(writes, func(c armemu.Call) bool { return strings.Contains(c.Resource, n.namespace+"-web") }); at >= 0 {
		writes = writes[:at]
	}
	if len(writes) > maxWritesBefore {
		n.t.Errorf("%d writes of others came before the neighbour's, want at most %d", len(writes), maxWritesBefore)
	}
	n.eventually("the bound pool", func() error {
		if got := n.addresses(n.bound, "edge"); !slices.Equal(got, []string{"10.0.0.2", foreignAddress}) {
			return fmt.Errorf("holds %v", got)
		}
		return nil
	})
}

// checkCleanup deletes the neighbor's objects and waits until Azure has none of them.
func (n *neighbour) checkCleanup() {
	n.t.Helper()
	before := n.picture()
	n.must(n.cluster.DeleteAllOf(n.t.Context(), &v1alpha1.BackendPool{}, client.InNamespace(n.namespace)))
	for _, name := range []string{"web", "all"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: n.namespace}}
		n.must(n.cluster.Delete(n.t.Context(), s))
		n.gone("Service "+name, s)
		if _, ok := n.emulator.Get(before["id of the public IP of "+name]); ok {
			n.t.Errorf("the public IP of %s is left", name)
		}
	}
	n.eventually("the pool of others", func() error {
		if got := n.addresses(n.bound, "edge"); !slices.Equal(got, []string{foreignAddress}) {
			return fmt.Errorf("holds %v", got)
		}
		return nil
	})
}
