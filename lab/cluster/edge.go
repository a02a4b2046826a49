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

// edge is an unmanaged load balancer. Users bind some of its pools; grants list the allowed
// namespaces.
const (
	edge   = "edge"
	grants = "weir.dev/allowed-load-balancers"
)

// edgePools are the pools of edge.
var edgePools = []string{"web", "nodes"}

// edges schedules BackendPools for pools of edge.
func edges(d *draw) {
	d.first = append(d.first, Step{0, "somebody makes load balancer edge", (*Stage).makeEdge})
	d.grant("shop", edge)
	d.first, d.steps = append(d.first, d.steps[len(d.steps)-1]), d.steps[:len(d.steps)-1]
	for range 6 + d.IntN(6) {
		pool := pick(d, edgePools...)
		name := pick(d, "shop/hand", "shop/hand-2", "blog/hand")
		switch d.IntN(8) {
		case 0, 1, 2, 3:
			service := pick(d, "web", "web", "api", "db", "")
			d.add(func(s *Stage) error { return s.bind(name, pool, service) }, "BackendPool %s is made for pool %s of edge and Service %q", name, pool, service)
		case 4, 5:
			d.add(func(s *Stage) error { return s.DeletePool(name) }, "BackendPool %s is deleted", name)
		case 6:
			d.add(func(s *Stage) error { return s.AddForeign(edge+"/"+pool, "10.0.9.3") }, "somebody puts 10.0.9.3 into pool %s of edge", pool)
		default:
			d.grant("blog", pick(d, "", edge, "other", "*", "rg/edge"))
		}
	}
}

func (d *draw) grant(namespace, to string) {
	d.add(func(s *Stage) error {
		return s.ChangeNamespace(namespace, func(n *corev1.Namespace) {
			was := granted(*n)
			n.Annotations = map[string]string{grants: to}
			s.revoked = s.revoked || was && !granted(*n)
		})
	}, "namespace %s may bind pools of %q", namespace, to)
}

// granted reports whether a namespace may bind pools of edge.
func granted(n corev1.Namespace) bool {
	return slices.Contains([]string{edge, "*", "rg/edge"}, n.Annotations[grants])
}

// makeEdge creates the load balancer.
func (s *Stage) makeEdge() error {
	var pools []map[string]any
	for _, name := range edgePools {
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
	s.edge = true
	return s.emu.Put(network+"loadBalancers/"+edge, body)
}

// bind creates a BackendPool for a pool of edge. Without a Service the pool holds all nodes.
func (s *Stage) bind(key, pool, service string) error {
	at := split(key)
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
	p.Spec.LoadBalancer.Name, p.Spec.PoolName = edge, pool
	if service == "" {
		p.Spec.Nodes = &v1alpha1.NodeMembers{}
	} else {
		p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: service}
	}
	return s.AddPool(p)
}

// bound returns the desired members of a BackendPool and its expected reason.
func (f facts) bound(p *v1alpha1.BackendPool) (members, reason string) {
	if p.Spec.Nodes != nil {
		return f.spell(f.nodesOf(corev1.IPv4Protocol, func(*corev1.Node) bool { return true })), v1alpha1.ReasonLevel
	}
	for i := range f.services {
		svc := &f.services[i]
		switch {
		case svc.Namespace != p.Namespace || svc.Name != p.Spec.ServiceRef.Name:
		case svc.Spec.Type != corev1.ServiceTypeLoadBalancer:
			return "", v1alpha1.ReasonServiceUnfit
		default:
			return f.spell(f.hosting(svc, corev1.IPv4Protocol)), v1alpha1.ReasonLevel
		}
	}
	return "", v1alpha1.ReasonServiceNotFound
}

// edges compares the pools of edge with their BackendPools. Of several BackendPools for one pool,
// exactly one owns it.
func (s *Stage) edges(f facts, c cloud) []error {
	if !s.edge {
		return nil
	}
	var all []error
	want := map[string]string{}
	held := map[string]string{}
	for i := range f.pools {
		p := &f.pools[i]
		if p.Spec.LoadBalancer.Name != edge {
			continue
		}
		members, reason := f.bound(p)
		synced := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced)
		other := held[p.Spec.PoolName]
		switch {
		case !granted(f.namespaces[p.Namespace]):
			reason = v1alpha1.ReasonNotAllowed
		case synced != nil && synced.Reason == v1alpha1.ReasonDuplicate:
			reason = v1alpha1.ReasonDuplicate
		case other != "":
			all = append(all, fmt.Errorf("BackendPools %s and %s/%s have one pool: %s", other, p.Namespace, p.Name, spell(synced)))
		default:
			want[p.Spec.PoolName], held[p.Spec.PoolName] = members, p.Namespace+"/"+p.Name
		}
		if synced == nil || synced.Reason != reason || p.DeletionTimestamp != nil {
			all = append(all, fmt.Errorf("BackendPool %s/%s is to say %s: %s", p.Namespace, p.Name, reason, spell(synced)))
		}
	}
	there := slices.IndexFunc(c.balancers, func(b balancer) bool { return b.Name == edge })
	if there < 0 {
		return append(all, fmt.Errorf("load balancer %s is gone", edge))
	}
	return append(all, s.edgePools(c.balancers[there], want, held)...)
}

// edgePools compares pools by name. A BackendPool without permission leaves its members; the next
// owner adopts those that are addresses of existing nodes.
func (s *Stage) edgePools(b balancer, want, held map[string]string) []error {
	var all []error
	if len(b.Properties.Frontends) != 1 || len(b.Properties.Pools) != len(edgePools) {
		all = append(all, fmt.Errorf("load balancer %s is not as somebody has made it", edge))
	}
	for _, p := range b.Properties.Pools {
		var is []string
		for _, member := range p.members(func(ip string) bool { return s.isForeign(edge+"/"+p.Name, ip) }) {
			_, left := s.gone[strings.TrimSuffix(member, "(Down)")]
			if !s.revoked || held[p.Name] != "" && !left {
				is = append(is, member)
			}
		}
		if spelled := strings.Join(is, " "); spelled != want[p.Name] {
			all = append(all, fmt.Errorf("pool %s of %s, of BackendPool %q, has members %q, want %q", p.Name, edge, held[p.Name], spelled, want[p.Name]))
		}
	}
	return all
}
