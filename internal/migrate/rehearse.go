// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// mostSteps: a scale set takes one step for its model and one for its instances.
const mostSteps = 100

// Rehearse assumes that Azure carries out each step. It ends with PhaseDone, or at the first wait
// or stop.
func Rehearse(j Journal, snapshot Seen) []Steps {
	var all []Steps
	for range mostSteps {
		s := Next(j, snapshot)
		all = append(all, s)
		if s.Phase == Done || len(s.Waits)+len(s.Stops) > 0 {
			break
		}
		snapshot = snapshot.after(s)
	}
	return all
}

func (s Seen) after(done Steps) Seen {
	s.Balancers, s.PublicIPs = slices.Clone(s.Balancers), slices.Clone(s.PublicIPs)
	s.Interfaces, s.ScaleSets = slices.Clone(s.Interfaces), slices.Clone(s.ScaleSets)
	for _, next := range done.PublicIPs {
		next.Provisioning = lb.Succeeded
		replace(s.PublicIPs, next, func(ip lb.PublicIP) string { return ip.ID.Key() })
	}
	for _, next := range done.Interfaces {
		next.Provisioning = lb.Succeeded
		replace(s.Interfaces, next, func(i lb.NetworkInterface) string { return i.ID.Key() })
	}
	for _, next := range done.ScaleSets {
		s.upgraded(next)
	}
	if done.Phase == Detach {
		s.emptied()
	}
	for _, b := range done.Delete {
		s.Balancers = slices.DeleteFunc(s.Balancers, func(has lb.LoadBalancer) bool { return has.ID.Key() == b.ID.Key() })
		s.use(b, "")
	}
	for _, b := range done.Put {
		b.Etag, b.Provisioning = "rehearsed", lb.Succeeded
		s.Balancers = slices.DeleteFunc(s.Balancers, func(has lb.LoadBalancer) bool { return has.ID.Key() == b.ID.Key() })
		s.Balancers = append(s.Balancers, b)
		s.use(b, b.ID.String()+"/frontendIPConfigurations/")
	}
	return s
}

func replace[T any](in []T, next T, key func(T) string) {
	for at := range in {
		if key(in[at]) == key(next) {
			in[at] = next
		}
	}
}

// use clears the public IPs for an empty prefix.
func (s Seen) use(b lb.LoadBalancer, prefix string) {
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

func (s Seen) upgraded(done SetSteps) {
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
			replace(set.Instances, next, func(i lb.Instance) string { return i.ID })
		}
	}
}

// emptied clears the pools that machines leave. Remaining members are found through their
// interfaces.
func (s Seen) emptied() {
	for at := range s.Balancers {
		b := &s.Balancers[at]
		if b.SKU != lb.Basic {
			continue
		}
		b.Pools = slices.Clone(b.Pools)
		for p := range b.Pools {
			b.Pools[p].Addresses = nil
		}
	}
}
