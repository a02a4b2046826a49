// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// basicService is a Service that a Basic load balancer serves, with its addresses there.
type basicService struct {
	key      string
	internal bool
	method   string // how the public IP, or the private address, is allocated
	dual     bool   // of both families
	brought  string // the public IP that people brought; who brings the same one shares it
	port     int32  // zero is 80
	on       string // the load balancer that it asks for; empty is none
}

// basics are those of each story: public and private addresses, Dynamic and Static.
func basics() []basicService {
	return []basicService{
		{key: "shop/web", method: "Dynamic"}, {key: "shop/api", method: "Static"}, {key: "blog/web", method: "Dynamic"},
		{key: "shop/db", internal: true, method: "Dynamic"}, {key: "blog/db", internal: true, method: "Static"},
		{key: "shop/queue", internal: true, method: "Dynamic"}, {key: "blog/queue", internal: true, method: "Dynamic"}, {key: "blog/cache", internal: true, method: "Dynamic"},
	}
}

func (b basicService) balancer() string {
	name := cmp.Or(b.on, clusterName)
	if b.internal {
		return name + "-internal"
	}
	return name
}

// edit is what the Service asks for.
func (b basicService) edit(svc *corev1.Service) {
	if b.internal {
		setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
	}
	setAnnotation(svc, annotation+"azure-pip-name", b.brought)
	setAnnotation(svc, annotation+"azure-load-balancer-configurations", b.on)
	svc.Spec.Ports[0].Port = cmp.Or(b.port, 80)
	if b.dual {
		svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	}
}

// basicAddress is that of one of some Services: of the first one with the same public IP, if people brought it.
func basicAddress(of []basicService, n int, family corev1.IPFamily) string {
	b := of[n]
	if b.brought != "" {
		n = slices.IndexFunc(of, func(first basicService) bool { return first.brought == b.brought })
	}
	switch six := family == corev1.IPv6Protocol; {
	case b.internal && six:
		return fmt.Sprintf("fd00::9:%x", 10+n)
	case b.internal:
		return fmt.Sprintf("10.0.9.%d", 10+n)
	case six:
		return fmt.Sprintf("2001:db8::%x", 10+n)
	}
	return fmt.Sprintf("198.18.9.%d", 10+n)
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

// basicBalancer is a Basic load balancer that is being made.
type basicBalancer struct {
	at               string
	frontends, rules []any
	pools            map[string]bool
	brought          map[string]string // the frontends of public IPs that people brought
}

// addBasicBalancers makes the Services, and the load balancers with a rule for each, and returns their pools.
//
// The subnet of the machines has the security group: without one nothing would reach them once all is Standard.
func (s *Stage) addBasicBalancers(of []basicService) (pools []any, err error) {
	all := map[string]*basicBalancer{}
	if err := s.guards(idOf(securityGroup)); err != nil {
		return nil, err
	}
	for n, b := range of {
		if err := s.AddService(b.key, b.edit); err != nil {
			return nil, err
		}
		svc := &corev1.Service{}
		if err := s.people.Get(ctx, split(b.key), svc); err != nil {
			return nil, err
		}
		name := b.balancer()
		if all[name] == nil {
			all[name] = &basicBalancer{at: network + "loadBalancers/" + name, pools: map[string]bool{}, brought: map[string]string{}}
		}
		families := []corev1.IPFamily{corev1.IPv4Protocol}
		if b.dual {
			families = append(families, corev1.IPv6Protocol)
		}
		for _, family := range families {
			ip := basicAddress(of, n, family)
			if err := s.addBasicFrontend(all[name], b, svc, family, ip); err != nil {
				return nil, err
			}
			svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
		if err := s.people.Status().Update(ctx, svc); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := all[name]
		var named []any
		for _, pool := range slices.Sorted(maps.Keys(b.pools)) {
			named = append(named, map[string]any{"name": pool})
			pools = append(pools, idOf(b.at+"/backendAddressPools/"+pool))
		}
		if err := s.seed(b.at, map[string]any{"location": region, "sku": map[string]any{"name": "Basic"}, "properties": map[string]any{
			"frontendIPConfigurations": b.frontends, "loadBalancingRules": b.rules, "backendAddressPools": named,
		}}); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

// guards has the subnet of the machines have a security group; nil is none.
func (s *Stage) guards(group any) error {
	return s.patch(vnetID, func(_, properties map[string]any) {
		for _, subnet := range properties["subnets"].([]any) {
			subnet.(map[string]any)["properties"].(map[string]any)["networkSecurityGroup"] = group
		}
	})
}

// addBasicFrontend adds a frontend of a Service, with its public IP if it has one, and the rule.
func (s *Stage) addBasicFrontend(to *basicBalancer, b basicService, svc *corev1.Service, family corev1.IPFamily, ip string) error {
	end := suffix(svc, family)
	name, pool := owner(svc)+end, clusterName+end
	switch first := to.brought[b.brought+end]; {
	case b.brought != "" && first != "" && end == "":
		name = first // it is shared
	case b.internal:
		to.frontends = append(to.frontends, map[string]any{"name": name, "properties": map[string]any{
			"subnet": idOf(vnetID + "/subnets/nodes"), "privateIPAllocationMethod": b.method, "privateIPAddress": ip, "privateIPAddressVersion": string(family),
		}})
	default:
		id, tags := network+"publicIPAddresses/"+publicIPOf(svc, family), map[string]any{"k8s-azure-service": b.key, "k8s-azure-cluster-name": clusterName}
		if b.brought != "" && end == "" {
			tags, to.brought[b.brought] = map[string]any{}, name
			s.peoples[strings.ToLower(id)] = ip
		}
		if err := s.seed(id, map[string]any{
			"location": region, "sku": map[string]any{"name": "Basic"}, "tags": tags,
			"properties": map[string]any{"publicIPAllocationMethod": b.method, "ipAddress": ip, "publicIPAddressVersion": string(family)},
		}); err != nil {
			return err
		}
		to.frontends = append(to.frontends, map[string]any{"name": name, "properties": map[string]any{"publicIPAddress": idOf(id)}})
	}
	to.pools[pool] = true
	port := cmp.Or(b.port, 80)
	to.rules = append(to.rules, map[string]any{"name": fmt.Sprintf("%s-TCP-%d%s", owner(svc), port, end), "properties": map[string]any{
		"protocol": "Tcp", "frontendPort": port, "backendPort": port, "enableFloatingIP": true,
		"frontendIPConfiguration": idOf(to.at + "/frontendIPConfigurations/" + name), "backendAddressPool": idOf(to.at + "/backendAddressPools/" + pool),
	}})
	return nil
}

// patch has a resource be another in Azure.
func (s *Stage) patch(id string, edit func(body, properties map[string]any)) error {
	raw, _ := s.emu.Get(id)
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	edit(body, body["properties"].(map[string]any))
	return s.seed(id, body)
}

func idOf(id string) map[string]any { return map[string]any{"id": id} }

// inPools is the network of a machine that is in these pools alone, each address in those of its family.
func inPools(pools []any, v4, v6 string) map[string]any {
	p := profile(v4, v6)
	for _, of := range p["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"].([]any) {
		properties := of.(map[string]any)["properties"].(map[string]any)
		six := properties["privateIPAddressVersion"] == "IPv6"
		in := slices.DeleteFunc(slices.Clone(pools), func(id any) bool { return strings.HasSuffix(id.(map[string]any)["id"].(string), "-IPv6") != six })
		if properties["loadBalancerBackendAddressPools"] = in; len(in) == 0 {
			delete(properties, "loadBalancerBackendAddressPools")
		}
	}
	return p
}

// behind has the machines of nodes, and the models of their scale sets, be in these pools alone.
func (s *Stage) behind(pools []any, nodes []int) error {
	for _, n := range nodes {
		v4, v6 := addressesOf(n)
		set := s.setOf(n)
		if set == "" {
			configs := inPools(pools, v4, v6)["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"]
			if err := s.seed(s.nicOf(n), map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": configs}}); err != nil {
				return err
			}
			continue
		}
		if err := s.seed(compute+"virtualMachineScaleSets/"+set, map[string]any{"location": region, "properties": map[string]any{
			"orchestrationMode": "Uniform", "upgradePolicy": map[string]any{"mode": scaleSets[set]}, "virtualMachineProfile": map[string]any{"networkProfile": inPools(pools, "", "")},
		}}); err != nil {
			return err
		}
		if err := s.seed(s.machineID(n), map[string]any{"location": region, "properties": map[string]any{"networkProfileConfiguration": inPools(pools, v4, v6)}}); err != nil {
			return err
		}
	}
	return nil
}

// machineKinds are what machines may be: a Basic load balancer has those of one availability set, or of one scale set.
var machineKinds = []string{"availability set", "Manual", "Automatic", "Flexible"}

// nodesOf are the numbers of nodes whose machines are of one kind.
func nodesOf(kind string, count int) []int {
	first := map[string]int{"Manual": 1, "Automatic": 2}[kind]
	var nodes []int
	for n := range count {
		nodes = append(nodes, first+3*n)
	}
	return nodes
}

// addBasicOf makes nodes of one kind, and Basic load balancers with them behind, and nothing besides.
func (s *Stage) addBasicOf(kind string, count int, services []basicService) error {
	nodes := nodesOf(kind, count)
	for _, n := range nodes {
		if err := s.AddNode(n); err != nil {
			return err
		}
	}
	pools, err := s.addBasicBalancers(services)
	if err != nil {
		return err
	}
	return s.machinesBehind(kind, nodes, pools)
}

// machinesBehind has machines of one kind be in these pools alone.
func (s *Stage) machinesBehind(kind string, nodes []int, pools []any) error {
	if err := s.behind(pools, nodes); err != nil || s.setOf(nodes[0]) != "" {
		return err
	}
	home, set := "availabilitySet", compute+"availabilitySets/nodes"
	if kind == "Flexible" {
		home, set = "virtualMachineScaleSet", compute+"virtualMachineScaleSets/flexible"
		if err := s.seed(set, map[string]any{"location": region, "properties": map[string]any{
			"orchestrationMode": "Flexible", "virtualMachineProfile": map[string]any{"networkProfile": inPools(pools, "", "")},
		}}); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := s.seed(s.machineID(n), map[string]any{"location": region, "properties": map[string]any{
			home: idOf(set), "networkProfile": map[string]any{"networkInterfaces": []any{idOf(s.nicOf(n))}},
		}}); err != nil {
			return err
		}
	}
	return nil
}

// migrated returns what is not as it was, or not Standard.
func (s *Stage) migrated() error { return s.migratedAll(basics()) }

func (s *Stage) migratedAll(of []basicService) error {
	c, err := s.observe()
	if err != nil {
		return err
	}
	for n, b := range of {
		svc := &corev1.Service{}
		if err := s.people.Get(ctx, split(b.key), svc); err != nil {
			return err
		}
		for _, family := range svc.Spec.IPFamilies {
			if want, is := basicAddress(of, n, family), c.addressOf(labelOf(svc, family)); is != want {
				return fmt.Errorf("%s had %s, and has %q", b.key, want, is)
			}
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
