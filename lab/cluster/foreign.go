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

// foreignMember is an address in a pool that somebody else has put there.
type foreignMember struct{ pool, ip string }

// onRecord is for what others put into a pool of which a BackendPool says what is Weir's.
const onRecord = -1

// loses is for what others put where Azure does not heed If-Match, while others write.
const loses = -2

// isForeign reports whether others have put an address into a pool.
func (s *Stage) isForeign(pool, ip string) bool {
	_, is := s.foreign[foreignMember{pool, ip}]
	return is
}

// stays reports whether what others put into a pool has to be there.
func (s *Stage) stays(m foreignMember) bool {
	since := s.foreign[m]
	return since == onRecord || since == s.lives()
}

// recorded reports whether a BackendPool says which members of a pool are Weir's. Where none
// does, all that is there counts as Weir's for the next one.
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

// forgetForeign is for a pool whose record somebody has deleted: the process that has seen it go knows
// what is Weir's. What is in a pool that Weir made counts as Weir's when a BackendPool takes it that
// another process makes (docs/reference/backendpool.md); which one makes it is not known here.
func (s *Stage) forgetForeign(pool string) {
	for member, since := range s.foreign {
		if member.pool == pool && since == onRecord && !strings.HasPrefix(pool, edge) {
			s.foreign[member] = s.lives()
		}
	}
}

// AddForeign has somebody else put an address into a pool, such as kubernetes/kubernetes.
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
	of := strings.Contains(string(raw), `"ipAddress"`) || strings.HasPrefix(pool, edge) // addresses
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
		return nil // it is there
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
		s.foreign[foreignMember{pool, ip}] = loses // to a write of what was read before
	}
	return nil
}

// othersKeep reports whether a line is about a load balancer that stays while others have addresses
// in a pool of it (0020).
func (s *Stage) othersKeep(c cloud, line string) bool {
	for member := range s.foreign {
		balancer, _, _ := strings.Cut(member.pool, "/")
		if line == "load balancer "+balancer && c.holds(member) {
			return true
		}
	}
	return slices.ContainsFunc(s.retained(c), func(f retained) bool { return slices.Contains(f.lines, line) })
}

// retained is a frontend that Azure requires while others have members in a pool of the load balancer.
type retained struct {
	name  string
	lines []string
}

// retained returns the only frontend, without rules, of each load balancer that others keep.
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

// hasPool reports whether there is a pool.
func (c cloud) hasPool(name string) bool {
	return slices.ContainsFunc(c.balancers, func(b balancer) bool {
		return slices.ContainsFunc(b.Properties.Pools, func(p pool) bool { return b.Name+"/"+p.Name == name })
	})
}

// holds reports whether a pool has an address.
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
