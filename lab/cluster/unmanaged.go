// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

// An unmanaged load balancer of which users bind some pools, and the annotation that grants it to a
// namespace.
const (
	unmanagedName   = "edge"
	grantAnnotation = "weir.dev/allowed-load-balancers"
)

// unmanagedPools are the pools of the unmanaged load balancer.
var unmanagedPools = []string{"web", "nodes"}

// addUnmanagedPools schedules BackendPools for them.
func addUnmanagedPools(d *scheduleBuilder) {
	d.first = append(d.first, Step{0, "somebody makes load balancer edge", (*Stage).createUnmanaged})
	d.grantBinding("shop", unmanagedName)
	d.first, d.steps = append(d.first, d.steps[len(d.steps)-1]), d.steps[:len(d.steps)-1]
	for range 6 + d.IntN(6) {
		pool := pickOne(d, unmanagedPools...)
		name := pickOne(d, "shop/hand", "shop/hand-2", "blog/hand")
		switch d.IntN(8) {
		case 0, 1, 2, 3:
			service := pickOne(d, "web", "web", "api", "db", "")
			d.addStep(func(s *Stage) error { return s.bindPool(name, pool, service) }, "BackendPool %s is made for pool %s of edge and Service %q", name, pool, service)
		case 4, 5:
			d.addStep(func(s *Stage) error { return s.DeletePool(name) }, "BackendPool %s is deleted", name)
		case 6:
			d.addStep(func(s *Stage) error { return s.AddForeign(unmanagedName+"/"+pool, "10.0.9.3") }, "somebody puts 10.0.9.3 into pool %s of edge", pool)
		default:
			d.grantBinding("blog", pickOne(d, "", unmanagedName, "other", "*", "rg/edge"))
		}
	}
}

func (b *scheduleBuilder) grantBinding(namespace, to string) {
	b.addStep(func(s *Stage) error {
		return s.ChangeNamespace(namespace, func(n *corev1.Namespace) {
			before := isGranted(*n)
			n.Annotations = map[string]string{grantAnnotation: to}
			s.grantRevoked = s.grantRevoked || before && !isGranted(*n)
		})
	}, "namespace %s may bind pools of %q", namespace, to)
}

// isGranted reports whether a namespace may bind them.
func isGranted(n corev1.Namespace) bool {
	return slices.Contains([]string{unmanagedName, "*", "rg/edge"}, n.Annotations[grantAnnotation])
}

// createUnmanaged creates the load balancer.
func (s *Stage) createUnmanaged() error {
	var pools []map[string]any
	for _, name := range unmanagedPools {
		pools = append(pools, map[string]any{"name": name, "properties": map[string]any{}})
	}
	body, err := json.Marshal(map[string]any{
		"location": region, "sku": map[string]any{"name": "Standard"},
		"properties": map[string]any{
			"frontendIPConfigurations": []map[string]any{{"name": "theirs", "properties": map[string]any{
				"subnet": map[string]any{"id": vnetID + "/subnets/nodes"}, "privateIPAllocationMethod": "Dynamic",
			}}},
			"backendAddressPools": pools,
		},
	})
	if err != nil {
		return err
	}
	s.hasUnmanaged = true
	return s.emulator.Put(network+"loadBalancers/"+unmanagedName, body)
}

// bindPool creates a BackendPool for one of them. Without a Service the pool holds all nodes.
func (s *Stage) bindPool(key, pool, service string) error {
	at := parseKey(key)
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
	p.Spec.LoadBalancer.Name, p.Spec.PoolName = unmanagedName, pool
	if service == "" {
		p.Spec.Nodes = &v1alpha1.NodeMembers{}
	} else {
		p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: service}
	}
	return s.AddPool(p)
}

// expectedBinding returns the desired members of a BackendPool and its expected reason.
func (o objects) expectedBinding(p *v1alpha1.BackendPool) (members, reason string) {
	if p.Spec.Nodes != nil {
		return o.formatMembers(o.filterNodes(corev1.IPv4Protocol, func(*corev1.Node) bool { return true })), v1alpha1.ReasonInSync
	}
	for i := range o.services {
		svc := &o.services[i]
		switch {
		case svc.Namespace != p.Namespace || svc.Name != p.Spec.ServiceRef.Name:
		case svc.Spec.Type != corev1.ServiceTypeLoadBalancer:
			return "", v1alpha1.ReasonServiceUnfit
		default:
			return o.formatMembers(o.hostingAddresses(svc, corev1.IPv4Protocol)), v1alpha1.ReasonInSync
		}
	}
	return "", v1alpha1.ReasonServiceNotFound
}

// checkUnmanagedPools compares these pools with their BackendPools. Of several BackendPools for one pool, exactly
// one owns it.
func (s *Stage) checkUnmanagedPools(f objects, c azureState) []error {
	if !s.hasUnmanaged {
		return nil
	}
	var errs []error
	want := map[string]string{}
	held := map[string]string{}
	for i := range f.pools {
		p := &f.pools[i]
		if p.Spec.LoadBalancer.Name != unmanagedName {
			continue
		}
		members, reason := f.expectedBinding(p)
		synced := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced)
		other := held[p.Spec.PoolName]
		switch {
		case !isGranted(f.namespaces[p.Namespace]):
			reason = v1alpha1.ReasonNotAllowed
		case synced != nil && synced.Reason == v1alpha1.ReasonDuplicate:
			reason = v1alpha1.ReasonDuplicate
		case other != "":
			errs = append(errs, fmt.Errorf("BackendPools %s and %s/%s have one pool: %s", other, p.Namespace, p.Name, formatJSON(synced)))
		default:
			want[p.Spec.PoolName], held[p.Spec.PoolName] = members, p.Namespace+"/"+p.Name
		}
		if synced == nil || synced.Reason != reason || p.DeletionTimestamp != nil {
			errs = append(errs, fmt.Errorf("BackendPool %s/%s is to say %s: %s", p.Namespace, p.Name, reason, formatJSON(synced)))
		}
	}
	there := slices.IndexFunc(c.balancers, func(b loadBalancer) bool { return b.Name == unmanagedName })
	if there < 0 {
		return append(errs, fmt.Errorf("load balancer %s is gone", unmanagedName))
	}
	return append(errs, s.diffUnmanagedPools(c.balancers[there], want, held)...)
}

// diffUnmanagedPools compares pools by name. A BackendPool without permission leaves its members; the next
// owner adopts those that are addresses of existing nodes.
func (s *Stage) diffUnmanagedPools(b loadBalancer, want, held map[string]string) []error {
	var errs []error
	if len(b.Properties.Frontends) != 1 || len(b.Properties.Pools) != len(unmanagedPools) {
		errs = append(errs, fmt.Errorf("load balancer %s is not as somebody has made it", unmanagedName))
	}
	for _, p := range b.Properties.Pools {
		var got []string
		for _, member := range p.managedMembers(func(ip string) bool { return s.isForeign(unmanagedName+"/"+p.Name, ip) }) {
			_, left := s.deletedAddresses[strings.TrimSuffix(member, "(Down)")]
			if !s.grantRevoked || held[p.Name] != "" && !left {
				got = append(got, member)
			}
		}
		if spelled := strings.Join(got, " "); spelled != want[p.Name] {
			errs = append(errs, fmt.Errorf("pool %s of %s, of BackendPool %q, has members %q, want %q", p.Name, unmanagedName, held[p.Name], spelled, want[p.Name]))
		}
	}
	return errs
}
