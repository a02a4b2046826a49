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

// basicService is a Service on a Basic load balancer.
type basicService struct {
	key      string
	internal bool
	method   string // allocation method of the public IP or private address
	dual     bool   // dual-stack
	brought  string // public IP provided by a user; Services with the same one share it
	port     int32  // zero is 80
	on       string // requested load balancer; empty: none
}

// basicServices returns public and private, Dynamic and Static Services.
func basicServices() []basicService {
	return []basicService{
		{key: "shop/web", method: "Dynamic"}, {key: "shop/api", method: "Static"}, {key: "blog/web", method: "Dynamic"},
		{key: "shop/db", internal: true, method: "Dynamic"}, {key: "blog/db", internal: true, method: "Static"},
		{key: "shop/queue", internal: true, method: "Dynamic"}, {key: "blog/queue", internal: true, method: "Dynamic"}, {key: "blog/cache", internal: true, method: "Dynamic"},
	}
}

func (b basicService) loadBalancerKey() string {
	name := cmp.Or(b.on, clusterName)
	if b.internal {
		return name + "-internal"
	}
	return name
}

// edit applies the spec to a Service.
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

// basicAddress returns the address of the n-th Service, which is that of the first one with the
// same user-provided public IP.
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

// addBasic creates the Services and Basic load balancers as cloud-provider-azure leaves them, with
// the machines of the given nodes.
func (s *Stage) addBasic(nodes ...int) error {
	pools, err := s.addBasicBalancers(basicServices())
	if err != nil {
		return err
	}
	if err := s.putResource(network+"loadBalancers/"+outboundName, map[string]any{
		"location": region, "sku": map[string]any{"name": "Standard"}, "properties": map[string]any{"backendAddressPools": []any{map[string]any{"name": "all"}}},
	}); err != nil {
		return err
	}
	return s.setMachinePools(append(pools, idOf(outboundPool)), nodes)
}

// basicBalancer is a Basic load balancer under construction.
type basicBalancer struct {
	at               string
	frontends, rules []any
	pools            map[string]bool
	brought          map[string]string // frontends of user-provided public IPs
}

// addBasicBalancers creates the Services and load balancers with one rule each and returns the
// pools.
//
// The machines' subnet has the security group, which Standard load balancers need for inbound
// traffic.
func (s *Stage) addBasicBalancers(of []basicService) (pools []any, err error) {
	balancers := map[string]*basicBalancer{}
	if err := s.setSubnetGroup(idOf(securityGroup)); err != nil {
		return nil, err
	}
	for n, b := range of {
		if err := s.AddService(b.key, b.edit); err != nil {
			return nil, err
		}
		svc := &corev1.Service{}
		if err := s.userClient.Get(ctx, parseKey(b.key), svc); err != nil {
			return nil, err
		}
		name := b.loadBalancerKey()
		if balancers[name] == nil {
			balancers[name] = &basicBalancer{at: network + "loadBalancers/" + name, pools: map[string]bool{}, brought: map[string]string{}}
		}
		families := []corev1.IPFamily{corev1.IPv4Protocol}
		if b.dual {
			families = append(families, corev1.IPv6Protocol)
		}
		for _, family := range families {
			ip := basicAddress(of, n, family)
			if err := s.addBasicFrontend(balancers[name], b, svc, family, ip); err != nil {
				return nil, err
			}
			svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
		if err := s.userClient.Status().Update(ctx, svc); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(balancers)) {
		b := balancers[name]
		var named []any
		for _, pool := range slices.Sorted(maps.Keys(b.pools)) {
			named = append(named, map[string]any{"name": pool})
			pools = append(pools, idOf(b.at+"/backendAddressPools/"+pool))
		}
		if err := s.putResource(b.at, map[string]any{"location": region, "sku": map[string]any{"name": "Basic"}, "properties": map[string]any{
			"frontendIPConfigurations": b.frontends, "loadBalancingRules": b.rules, "backendAddressPools": named,
		}}); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

// setSubnetGroup sets the security group of the machines' subnet; nil removes it.
func (s *Stage) setSubnetGroup(group any) error {
	return s.editResource(vnetID, func(_, properties map[string]any) {
		for _, subnet := range properties["subnets"].([]any) {
			subnet.(map[string]any)["properties"].(map[string]any)["networkSecurityGroup"] = group
		}
	})
}

// addBasicFrontend adds a Service's frontend, public IP if any, and rule.
func (s *Stage) addBasicFrontend(to *basicBalancer, b basicService, svc *corev1.Service, family corev1.IPFamily, ip string) error {
	end := familySuffix(svc, family)
	name, pool := ownerName(svc)+end, clusterName+end
	switch first := to.brought[b.brought+end]; {
	case b.brought != "" && first != "" && end == "":
		name = first // shared
	case b.internal:
		to.frontends = append(to.frontends, map[string]any{"name": name, "properties": map[string]any{
			"subnet": idOf(vnetID + "/subnets/nodes"), "privateIPAllocationMethod": b.method, "privateIPAddress": ip, "privateIPAddressVersion": string(family),
		}})
	default:
		id, tags := network+"publicIPAddresses/"+publicIPName(svc, family), map[string]any{"k8s-azure-service": b.key, "k8s-azure-cluster-name": clusterName}
		if b.brought != "" && end == "" {
			tags, to.brought[b.brought] = map[string]any{}, name
			s.userIPs[strings.ToLower(id)] = ip
		}
		if err := s.putResource(id, map[string]any{
			"location": region, "sku": map[string]any{"name": "Basic"}, "tags": tags,
			"properties": map[string]any{"publicIPAllocationMethod": b.method, "ipAddress": ip, "publicIPAddressVersion": string(family)},
		}); err != nil {
			return err
		}
		to.frontends = append(to.frontends, map[string]any{"name": name, "properties": map[string]any{"publicIPAddress": idOf(id)}})
	}
	to.pools[pool] = true
	port := cmp.Or(b.port, 80)
	to.rules = append(to.rules, map[string]any{"name": fmt.Sprintf("%s-TCP-%d%s", ownerName(svc), port, end), "properties": map[string]any{
		"protocol": "Tcp", "frontendPort": port, "backendPort": port, "enableFloatingIP": true,
		"frontendIPConfiguration": idOf(to.at + "/frontendIPConfigurations/" + name), "backendAddressPool": idOf(to.at + "/backendAddressPools/" + pool),
	}})
	return nil
}

func (s *Stage) editResource(id string, edit func(body, properties map[string]any)) error {
	raw, _ := s.emulator.Get(id)
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	edit(body, body["properties"].(map[string]any))
	return s.putResource(id, body)
}

func idOf(id string) map[string]any { return map[string]any{"id": id} }

// poolsProfile returns the network profile of a machine in exactly these pools, each address in those of
// its family.
func poolsProfile(pools []any, v4, v6 string) map[string]any {
	p := networkProfile(v4, v6)
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

// setMachinePools puts the nodes' machines and the models of their scale sets into exactly these pools.
func (s *Stage) setMachinePools(pools []any, nodes []int) error {
	for _, n := range nodes {
		v4, v6 := nodeAddresses(n)
		set := s.scaleSetName(n)
		if set == "" {
			configs := poolsProfile(pools, v4, v6)["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"]
			if err := s.putResource(s.nicOf(n), map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": configs}}); err != nil {
				return err
			}
			continue
		}
		if err := s.putResource(computeID+"virtualMachineScaleSets/"+set, map[string]any{"location": region, "properties": map[string]any{
			"orchestrationMode": "Uniform", "upgradePolicy": map[string]any{"mode": scaleSets[set]}, "virtualMachineProfile": map[string]any{"networkProfile": poolsProfile(pools, "", "")},
		}}); err != nil {
			return err
		}
		if err := s.putResource(s.machineID(n), map[string]any{"location": region, "properties": map[string]any{"networkProfileConfiguration": poolsProfile(pools, v4, v6)}}); err != nil {
			return err
		}
	}
	return nil
}

// machineKinds are the kinds of machines: a Basic load balancer serves one availability set or one
// scale set.
var machineKinds = []string{"availability set", "Manual", "Automatic", "Flexible"}

// nodesOfKind returns the nodes with machines of one kind.
func nodesOfKind(kind string, count int) []int {
	first := map[string]int{"Manual": 1, "Automatic": 2}[kind]
	var nodes []int
	for n := range count {
		nodes = append(nodes, first+3*n)
	}
	return nodes
}

// addBasicOf creates nodes of one kind and their Basic load balancers, and nothing else.
func (s *Stage) addBasicOf(kind string, count int, services []basicService) error {
	nodes := nodesOfKind(kind, count)
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

// machinesBehind puts machines of one kind into exactly these pools.
func (s *Stage) machinesBehind(kind string, nodes []int, pools []any) error {
	if err := s.setMachinePools(pools, nodes); err != nil || s.scaleSetName(nodes[0]) != "" {
		return err
	}
	home, set := "availabilitySet", computeID+"availabilitySets/nodes"
	if kind == "Flexible" {
		home, set = "virtualMachineScaleSet", computeID+"virtualMachineScaleSets/flexible"
		if err := s.putResource(set, map[string]any{"location": region, "properties": map[string]any{
			"orchestrationMode": "Flexible", "virtualMachineProfile": map[string]any{"networkProfile": poolsProfile(pools, "", "")},
		}}); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := s.putResource(s.machineID(n), map[string]any{"location": region, "properties": map[string]any{
			home: idOf(set), "networkProfile": map[string]any{"networkInterfaces": []any{idOf(s.nicOf(n))}},
		}}); err != nil {
			return err
		}
	}
	return nil
}

// checkMigrated returns what is not migrated or was not preserved.
func (s *Stage) checkMigrated() error { return s.migratedAll(basicServices()) }

func (s *Stage) migratedAll(of []basicService) error {
	c, err := s.readAzure()
	if err != nil {
		return err
	}
	for n, b := range of {
		svc := &corev1.Service{}
		if err := s.userClient.Get(ctx, parseKey(b.key), svc); err != nil {
			return err
		}
		for _, family := range svc.Spec.IPFamilies {
			if want, got := basicAddress(of, n, family), c.addressOf(frontendLabel(svc, family)); got != want {
				return fmt.Errorf("%s had %s, and has %q", b.key, want, got)
			}
		}
		if isMigrating(svc) {
			return fmt.Errorf("%s says that it migrates when that is over", b.key)
		}
	}
	if strings.Contains(string(s.emulator.Snapshot()), `"Basic"`) {
		return errors.New("something is Basic")
	}
	return nil
}
