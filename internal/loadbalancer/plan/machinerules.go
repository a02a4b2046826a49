// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Counts are rule counts by lower-case pool name.
type Counts map[string]int

// CountRules counts the rules that Azure counts for a network interface in the load balancer's pools. An
// inbound NAT rule of one machine counts for all pools, because the machine may be in any of them.
func CountRules(b lb.LoadBalancer) Counts {
	n := Counts{}
	for _, r := range b.Rules {
		n[strings.ToLower(r.Pool)]++
	}
	for pool := range n {
		n[pool] += b.NATRules[""]
	}
	for pool, rules := range b.NATRules {
		if pool != "" {
			n[pool] += rules
		}
	}
	return n
}

func byPool(rules []lb.Rule) Counts {
	return CountRules(lb.LoadBalancer{Rules: rules})
}

// machineGrowth returns how many rules a Service adds per machine of each pool.
func (u *usageTable) machineGrowth(s ServiceParts) Counts {
	more := byPool(s.Rules)
	for _, r := range u.Observed.Rules {
		if hasOwner(s.Owner, r.Name) {
			more[strings.ToLower(r.Pool)]--
		}
	}
	return more
}

// machinesExceeded returns why a Service would exceed Azure's limit of rules per network interface, or nil.
// Accepted rules count for later Services.
func (u *usageTable) machinesExceeded(s ServiceParts) error {
	if u.PeerRules == nil {
		return nil
	}
	if u.onMachines == nil {
		u.onMachines = CountRules(u.Observed)
	}
	more := u.machineGrowth(s)
	for pool, n := range more {
		own, peer := u.onMachines[pool], u.PeerRules[pool]
		if would := own + peer + n; n > 0 && would > lb.MaxMachineRules {
			return fmt.Errorf("machines would have %d load balancing and inbound NAT rules in backend pool %s, and Azure allows %d for a network interface: "+
				"load balancer %s has %d, its internal or public twin has %d, and the Service adds %d. Delete ports or Services, move Services to another load balancer, "+
				`or set "loadBalancerBackendPoolConfigurationType": "nodeIP" in azure.json`,
				would, pool, lb.MaxMachineRules, u.Observed.ID.Name, own, peer, n)
		}
	}
	for pool, n := range more {
		u.onMachines[pool] += max(n, 0)
	}
	return nil
}
