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
	"weir.dev/weir/internal/lb/behavior"
)

// foreignMember is a pool address added by another writer.
type foreignMember struct{ pool, ip string }

// foreignRecorded marks a foreign member of a pool with a BackendPool that records Weir's members.
const foreignRecorded = -1

// foreignUncertain marks a foreign member that a concurrent write may lose, because Azure ignores If-Match.
const foreignUncertain = -2

// isForeign reports whether another writer added the address to the pool.
func (s *Stage) isForeign(pool, ip string) bool {
	_, ok := s.foreign[foreignMember{pool, ip}]
	return ok
}

// mustRemain reports whether a foreign member must still be in its pool.
func (s *Stage) mustRemain(m foreignMember) bool {
	since := s.foreign[m]
	return since == foreignRecorded || since == s.processCount()
}

// hasRecord reports whether a BackendPool records Weir's members of the pool. Without a record the
// next BackendPool treats all members as Weir's.
func (s *Stage) hasRecord(pool string) (bool, error) {
	var list v1alpha1.BackendPoolList
	if err := s.userClient.List(ctx, &list); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, func(p v1alpha1.BackendPool) bool {
		return poolKey(&p) == pool && p.DeletionTimestamp == nil && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionSynced)
	}), nil
}

func poolKey(p *v1alpha1.BackendPool) string { return p.Spec.LoadBalancer.Name + "/" + p.Spec.PoolName }

// forgetForeign handles the deletion of a BackendPool. Only the process that saw the deletion still
// knows Weir's members; a BackendPool created by a later process adopts every member of a pool that
// Weir created (docs/reference/backendpool.md).
func (s *Stage) forgetForeign(pool string) {
	for member, since := range s.foreign {
		if member.pool == pool && since == foreignRecorded && !strings.HasPrefix(pool, unmanagedName) {
			s.foreign[member] = s.processCount()
		}
	}
}

// AddForeign adds an address to a pool as another controller would, such as kubernetes/kubernetes.
func (s *Stage) AddForeign(pool, ip string) error {
	if recorded, err := s.hasRecord(pool); !strings.HasPrefix(pool, unmanagedName) && (err != nil || !recorded) {
		return errors.Join(err, fmt.Errorf("there is no pool %s of which it is on record what is in it", pool))
	}
	balancer, name, _ := strings.Cut(pool, "/")
	id := network + "loadBalancers/" + balancer + "/backendAddressPools/" + name
	raw, ok := s.emulator.Get(id)
	if !ok {
		return fmt.Errorf("there is no pool %s", pool)
	}
	of := strings.Contains(string(raw), `"ipAddress"`) || strings.HasPrefix(pool, unmanagedName) // the pool holds IP addresses
	if s.hasInterfaces() && !of || strings.Contains(string(raw), `"networkInterfaceIPConfiguration"`) {
		s.foreign[foreignMember{pool, ip}] = foreignRecorded
		return s.addForeignInterface(id, ip)
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
	if err := s.emulator.Put(id, next); err != nil {
		return err
	}
	s.foreign[foreignMember{pool, ip}] = foreignRecorded
	if s.opts.Behaviour.PoolIfMatch == behavior.Ignored && !s.isIdle {
		s.foreign[foreignMember{pool, ip}] = foreignUncertain // a write based on an older read
	}
	return nil
}

// isRetained reports whether a line belongs to a load balancer that is retained because a pool has
// foreign addresses (0020).
func (s *Stage) isRetained(c azureState, line string) bool {
	for member := range s.foreign {
		balancer, _, _ := strings.Cut(member.pool, "/")
		if line == "load balancer "+balancer && c.hasMember(member) {
			return true
		}
	}
	return slices.ContainsFunc(s.retainedFrontends(c), func(f retainedFrontend) bool { return slices.Contains(f.lines, line) })
}

// retainedFrontend is a frontend that Azure requires while the load balancer has foreign members.
type retainedFrontend struct {
	name  string
	lines []string
}

// retainedFrontends returns the single rule-less frontend of each load balancer that foreign members retain.
func (s *Stage) retainedFrontends(c azureState) []retainedFrontend {
	var frontends []retainedFrontend
	for member := range s.foreign {
		name, _, _ := strings.Cut(member.pool, "/")
		at := slices.IndexFunc(c.balancers, func(b loadBalancer) bool { return b.Name == name })
		if at < 0 || !c.hasMember(member) || len(c.balancers[at].Properties.Frontends) != 1 || len(c.balancers[at].Properties.Rules) > 0 {
			continue
		}
		f := c.balancers[at].Properties.Frontends[0]
		frontends = append(frontends, retainedFrontend{f.Name, []string{name + ": frontend " + f.publicLabel(), fmt.Sprintf("public IP %s of %q", f.Properties.PublicIP.lastSegment(), "")}})
	}
	return frontends
}

func (s azureState) hasPool(name string) bool {
	return slices.ContainsFunc(s.balancers, func(b loadBalancer) bool {
		return slices.ContainsFunc(b.Properties.Pools, func(p pool) bool { return b.Name+"/"+p.Name == name })
	})
}

// hasMember reports whether the pool contains the address.
func (s azureState) hasMember(m foreignMember) bool {
	for _, b := range s.balancers {
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
