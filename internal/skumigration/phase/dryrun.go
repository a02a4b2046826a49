// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// maxSteps: a scale set takes one step for its model and one for its instances.
const maxSteps = 100

// DryRun assumes that Azure carries out each step. It ends with PhaseDone, or at the first wait
// or stop.
func DryRun(j Journal, snapshot Snapshot) []Steps {
	var steps []Steps
	for range maxSteps {
		s := NextSteps(j, snapshot)
		steps = append(steps, s)
		if s.Phase == PhaseDone || len(s.WaitReasons)+len(s.StopReasons) > 0 {
			break
		}
		snapshot = snapshot.applySteps(s)
	}
	return steps
}

func (s Snapshot) applySteps(done Steps) Snapshot {
	s.LoadBalancers, s.PublicIPs = slices.Clone(s.LoadBalancers), slices.Clone(s.PublicIPs)
	s.Interfaces, s.ScaleSets = slices.Clone(s.Interfaces), slices.Clone(s.ScaleSets)
	for _, next := range done.PublicIPs {
		next.Provisioning = lb.Succeeded
		replaceByKey(s.PublicIPs, next, func(ip lb.PublicIP) string { return ip.ID.Key() })
	}
	for _, next := range done.Interfaces {
		next.Provisioning = lb.Succeeded
		replaceByKey(s.Interfaces, next, func(i lb.NetworkInterface) string { return i.ID.Key() })
	}
	for _, next := range done.ScaleSets {
		s.applyScaleSetSteps(next)
	}
	if done.Phase == PhaseDetach {
		s.clearPools()
	}
	for _, b := range done.Delete {
		s.LoadBalancers = slices.DeleteFunc(s.LoadBalancers, func(balancer lb.LoadBalancer) bool { return balancer.ID.Key() == b.ID.Key() })
		s.setUsedBy(b, "")
	}
	for _, b := range done.Put {
		b.Etag, b.Provisioning = "rehearsed", lb.Succeeded
		s.LoadBalancers = slices.DeleteFunc(s.LoadBalancers, func(balancer lb.LoadBalancer) bool { return balancer.ID.Key() == b.ID.Key() })
		s.LoadBalancers = append(s.LoadBalancers, b)
		s.setUsedBy(b, b.ID.String()+"/frontendIPConfigurations/")
	}
	return s
}

func replaceByKey[T any](in []T, next T, key func(T) string) {
	for at := range in {
		if key(in[at]) == key(next) {
			in[at] = next
		}
	}
}

// setUsedBy clears the public IPs for an empty prefix.
func (s Snapshot) setUsedBy(b lb.LoadBalancer, prefix string) {
	for at := range s.PublicIPs {
		for _, f := range b.Frontends {
			if strings.EqualFold(f.PublicIP, s.PublicIPs[at].ID.String()) {
				s.PublicIPs[at].UsedBy = prefix
				if prefix != "" {
					s.PublicIPs[at].UsedBy += f.Name
				}
			}
		}
	}
}

func (s Snapshot) applyScaleSetSteps(done ScaleSetSteps) {
	for at := range s.ScaleSets {
		set := &s.ScaleSets[at]
		if set.ID.Key() != done.ID.Key() {
			continue
		}
		set.Instances = slices.Clone(set.Instances)
		if done.Model != nil {
			set.Interfaces = done.Model.Interfaces
		}
		for i := range set.Instances {
			instance := &set.Instances[i]
			if done.Model != nil && set.UpgradeMode != lb.UpgradeManual && !instance.Protected || slices.Contains(done.Upgrade, instance.ID) {
				instance.Interfaces, instance.LatestModel = set.Interfaces, true
			}
		}
		for _, next := range done.Write {
			replaceByKey(set.Instances, next, func(i lb.Instance) string { return i.ID })
		}
	}
}

// clearPools clears the pools that machines leave. Remaining members are found through their
// interfaces.
func (s Snapshot) clearPools() {
	for at := range s.LoadBalancers {
		b := &s.LoadBalancers[at]
		if b.SKU != lb.Basic {
			continue
		}
		b.Pools = slices.Clone(b.Pools)
		for p := range b.Pools {
			b.Pools[p].Addresses = nil
		}
	}
}
