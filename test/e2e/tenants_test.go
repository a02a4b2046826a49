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
						what, err := act()
						l.must(err)
						a.deeds = append(a.deeds, what)
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
func (b *neighbour) renderInSync() picture {
	b.t.Helper()
	b.ingress("web", 1)
	b.ingress("all", 1)
	var p picture
	b.eventually("the neighbour is in sync", func() error {
		p = b.picture()
		for _, pool := range []string{"web." + b.namespace, "edge"} {
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
func (b *neighbour) checkUnchanged(before picture, deeds []string) {
	b.t.Helper()
	defer func() {
		if b.t.Failed() {
			b.t.Logf("what the tenant did:\n%s", strings.Join(deeds, "\n"))
		}
	}()
	b.eventually("the neighbour has what it had", func() error {
		if diff := gocmp.Diff(before, b.picture()); diff != "" {
			return fmt.Errorf("before and after:\n%s", diff)
		}
		return nil
	})
	for name, id := range before {
		if !strings.HasPrefix(name, "id of") {
			continue
		}
		taken := b.emulator.Calls(func(c armemu.Call) bool {
			return c.Kind == armemu.KindDelete && strings.EqualFold(c.Resource, id) && c.Status < 300
		})
		if len(taken) > 0 {
			b.t.Errorf("%s was deleted: %s", name, id)
		}
	}
}

func (b *neighbour) picture() picture {
	b.t.Helper()
	p := picture{}
	var addresses []string
	for _, name := range []string{"web", "all"} {
		var s corev1.Service
		b.must(b.cluster.Get(b.t.Context(), key(b.namespace, name), &s))
		for _, in := range s.Status.LoadBalancer.Ingress {
			p["address of "+name] = in.IP
			addresses = append(addresses, in.IP)
		}
		for _, c := range s.Status.Conditions {
			p["condition "+c.Type+" of "+name] = string(c.Status) + " " + c.Reason
		}
		owner := b.owner(name)
		p["id of the public IP of "+name] = network + "/publicIPAddresses/" + b.namespace + "-" + owner
		for _, kind := range []string{"frontendIPConfigurations", "loadBalancingRules", "probes"} {
			p[kind+" of "+name] = b.owned(kind, owner)
		}
	}
	p["pool of web"] = fmt.Sprint(b.addresses(b.loadBalancer(), b.namespace+"-web"))
	p["pool of all"] = fmt.Sprint(b.addresses(b.loadBalancer(), b.namespace))
	p["pool of others"] = fmt.Sprint(b.addresses(b.bound, "edge"))
	p["security rules"] = b.securityRules(addresses)
	for _, pool := range b.pools() {
		p["state of "+pool.Name] = pool.Status.Conditions[slices.IndexFunc(pool.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSynced })].Reason
	}
	var events corev1.EventList
	b.must(b.cluster.List(b.t.Context(), &events, client.InNamespace(b.namespace)))
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			p["warning about "+e.InvolvedObject.Name+": "+e.Reason] = e.Message
		}
	}
	return p
}

// pools returns the neighbor's BackendPools with a status.
func (b *neighbour) pools() []v1alpha1.BackendPool {
	b.t.Helper()
	var all v1alpha1.BackendPoolList
	b.must(b.cluster.List(b.t.Context(), &all, client.InNamespace(b.namespace)))
	return slices.DeleteFunc(all.Items, func(p v1alpha1.BackendPool) bool {
		return !slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSynced })
	})
}

// owned returns the parts of a kind with an owner's name, without etags and back references.
func (b *neighbour) owned(kind, owner string) string {
	b.t.Helper()
	body, ok := b.emulator.Get(b.loadBalancer())
	if !ok {
		return ""
	}
	var shown struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	b.must(json.Unmarshal(body, &shown))
	var parts []map[string]any
	if raw := shown.Properties[kind]; raw != nil {
		b.must(json.Unmarshal(raw, &parts))
	}
	var all []string
	for _, part := range parts {
		name, _ := part["name"].(string)
		if !strings.HasPrefix(name, owner) {
			continue
		}
		delete(part, "etag")
		text, err := json.Marshal(part)
		b.must(err)
		all = append(all, string(text))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// securityRules returns the security rules for each of these addresses; Services with equal sources
// share a rule.
func (b *neighbour) securityRules(addresses []string) string {
	b.t.Helper()
	body, _ := b.emulator.Get(securityGroup)
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
	b.must(json.Unmarshal(body, &shown))
	var all []string
	for _, r := range shown.Properties.Rules {
		p := r.Properties
		for _, to := range append(p.Destinations, p.Destination) {
			atNodes := strings.HasPrefix(to, "10.0.0.") && slices.Contains(append(p.Ports, p.Port), "*")
			if to == "*" || strings.Contains(to, "/") || slices.Contains(addresses, to) || atNodes {
				all = append(all, fmt.Sprintf("%s %s from %v to %s at %v", p.Access, p.Protocol, append(p.Sources, p.Source), to, append(p.Ports, p.Port)))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// checkPromptChange moves the neighbor's endpoint and counts the writes of others before it is in the
// pools.
func (b *neighbour) checkPromptChange() {
	b.t.Helper()
	last := b.emulator.Calls()
	since := last[len(last)-1].Seq
	b.move("web", b.nodes[1])
	b.becomes(b.namespace+"-web", "10.0.0.2")
	writes := b.emulator.Calls(func(c armemu.Call) bool { return c.Seq > since && c.Kind == armemu.KindPut })
	if at := slices.IndexFunc(writes, func(c armemu.Call) bool { return strings.Contains(c.Resource, b.namespace+"-web") }); at >= 0 {
		writes = writes[:at]
	}
	if len(writes) > maxWritesBefore {
		b.t.Errorf("%d writes of others came before the neighbour's, want at most %d", len(writes), maxWritesBefore)
	}
	b.eventually("the bound pool", func() error {
		if got := b.addresses(b.bound, "edge"); !slices.Equal(got, []string{"10.0.0.2", foreignAddress}) {
			return fmt.Errorf("holds %v", got)
		}
		return nil
	})
}

// checkCleanup deletes the neighbor's objects and waits until Azure has none of them.
func (b *neighbour) checkCleanup() {
	b.t.Helper()
	before := b.picture()
	b.must(b.cluster.DeleteAllOf(b.t.Context(), &v1alpha1.BackendPool{}, client.InNamespace(b.namespace)))
	for _, name := range []string{"web", "all"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace}}
		b.must(b.cluster.Delete(b.t.Context(), s))
		b.gone("Service "+name, s)
		if _, ok := b.emulator.Get(before["id of the public IP of "+name]); ok {
			b.t.Errorf("the public IP of %s is left", name)
		}
	}
	b.eventually("the pool of others", func() error {
		if got := b.addresses(b.bound, "edge"); !slices.Equal(got, []string{foreignAddress}) {
			return fmt.Errorf("holds %v", got)
		}
		return nil
	})
}
