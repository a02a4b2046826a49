// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/behaviour"
)

// foreignMember is a pool address added by another writer.
type foreignMember struct{ pool, ip string }

// onRecord marks a foreign member of a pool whose BackendPool records Weir's members.
const onRecord = -1

// loses marks a foreign member that a concurrent write may lose, because Azure ignores If-Match.
const loses = -2

// isForeign reports whether another writer added the address to the pool.
func (s *Stage) isForeign(pool, ip string) bool {
	_, is := s.foreign[foreignMember{pool, ip}]
	return is
}

// stays reports whether a foreign member must still be in its pool.
func (s *Stage) stays(m foreignMember) bool {
	since := s.foreign[m]
	return since == onRecord || since == s.lives()
}

// recorded reports whether a BackendPool records Weir's members of the pool. Without a record the
// next BackendPool treats all members as Weir's.
func (s *Stage) recorded(pool string) (bool, error) {
	var all v1alpha1.BackendPoolList
	if err := s.people.List(ctx, &all); err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, func(p v1alpha1.BackendPool) bool {
		return poolOf(&p) == pool && p.DeletionTimestamp == nil && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionSynced)
	}), nil
}

func poolOf(p *v1alpha1.BackendPool) string { return p.Spec.LoadBalancer.Name + "/" + p.Spec.PoolName }

// forgetForeign handles a pool whose BackendPool was deleted. Only the process that saw the
// deletion still knows Weir's members; a BackendPool created by a later process adopts every member
// of a pool that Weir created (docs/reference/backendpool.md).
func (s *Stage) forgetForeign(pool string) {
	for member, since := range s.foreign {
		if member.pool == pool && since == onRecord && !strings.HasPrefix(pool, edge) {
			s.foreign[member] = s.lives()
		}
	}
}

// AddForeign adds an address to a pool as another controller would, such as kubernetes/kubernetes.
func (s *Stage) AddForeign(pool, ip string) error {
	if is, err := s.recorded(pool); !strings.HasPrefix(pool, edge) && (err != nil || !is) {
		return errors.Join(err, fmt.Errorf("there is no pool %s of which it is on record what is in it", pool))
	}
	balancer, name, _ := strings.Cut(pool, "/")
	id := network + "loadBalancers/" + balancer + "/backendAddressPools/" + name
	raw, ok := s.emu.Get(id)
	if !ok {
		return fmt.Errorf("there is no pool %s", pool)
	}
	of := strings.Contains(string(raw), `"ipAddress"`) || strings.HasPrefix(pool, edge) // the pool holds IP addresses
	if s.interfaces() && !of || strings.Contains(string(raw), `"networkInterfaceIPConfiguration"`) {
		s.foreign[foreignMember{pool, ip}] = onRecord
		return s.foreignInterface(id, ip)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	properties, _ := body["properties"].(map[string]any)
	addresses, _ := properties["loadBalancerBackendAddresses"].([]any)
	if strings.Contains(string(raw), `"theirs-`+ip+`"`) {
		return nil // already present
	}
	properties["loadBalancerBackendAddresses"] = append(addresses, map[string]any{
		"name": "theirs-" + ip, "properties": map[string]any{"ipAddress": ip, "virtualNetwork": map[string]any{"id": vnetID}},
	})
	next, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if err := s.emu.Put(id, next); err != nil {
		return err
	}
	s.foreign[foreignMember{pool, ip}] = onRecord
	if s.opts.Behaviour.PoolIfMatch == behaviour.Ignored && !s.calm {
		s.foreign[foreignMember{pool, ip}] = loses // a write based on an older read
	}
	return nil
}

// othersKeep reports whether a line belongs to a load balancer that is retained because a pool has
// foreign addresses (0020).
func (s *Stage) othersKeep(c cloud, line string) bool {
	for member := range s.foreign {
		balancer, _, _ := strings.Cut(member.pool, "/")
		if line == "load balancer "+balancer && c.holds(member) {
			return true
		}
	}
	return slices.ContainsFunc(s.retained(c), func(f retained) bool { return slices.Contains(f.lines, line) })
}

// retained is a frontend that Azure requires while the load balancer has foreign members.
type retained struct {
	name  string
	lines []string
}

// retained returns the single rule-less frontend of each load balancer that foreign members retain.
func (s *Stage) retained(c cloud) []retained {
	var all []retained
	for member := range s.foreign {
		name, _, _ := strings.Cut(member.pool, "/")
		at := slices.IndexFunc(c.balancers, func(b balancer) bool { return b.Name == name })
		if at < 0 || !c.holds(member) || len(c.balancers[at].Properties.Frontends) != 1 || len(c.balancers[at].Properties.Rules) > 0 {
			continue
		}
		f := c.balancers[at].Properties.Frontends[0]
		all = append(all, retained{f.Name, []string{name + ": frontend " + f.label(), fmt.Sprintf("public IP %s of %q", f.Properties.PublicIP.name(), "")}})
	}
	return all
}

// hasPool reports whether the pool exists.
func (c cloud) hasPool(name string) bool {
	return slices.ContainsFunc(c.balancers, func(b balancer) bool {
		return slices.ContainsFunc(b.Properties.Pools, func(p pool) bool { return b.Name+"/"+p.Name == name })
	})
}

// holds reports whether the pool contains the address.
func (c cloud) holds(m foreignMember) bool {
	for _, b := range c.balancers {
		for _, p := range b.Properties.Pools {
			for _, a := range p.Properties.Addresses {
				if b.Name+"/"+p.Name == m.pool && a.Properties.IP == m.ip {
					return true
				}
			}
		}
	}
	return false
}
