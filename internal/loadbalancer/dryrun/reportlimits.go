// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/loadbalancer/plan"
)

// limits writes how much of Azure's limits is used: in one line what the plan changes, and a line each for
// what is nearly used up.
func (w *textWriter) limits(p Report) {
	var changed []string
	resource := ""
	for _, l := range p.Limits {
		switch text := fmt.Sprintf("%d/%d %s", l.Used, l.Max, l.Name); {
		case !l.IsChanged() || l.CountsMembers():
		case l.Resource == resource:
			changed[len(changed)-1] += ", " + text
		default:
			changed, resource = append(changed, l.Resource+" "+text), l.Resource
		}
	}
	if len(changed) > 0 {
		w.writeLine(0, "", "Limits: "+strings.Join(changed, "; ")+".")
	}
	for _, l := range p.Limits {
		switch {
		case !l.IsNear():
		case l.IsOfRegion():
			w.writeLine(0, "!", fmt.Sprintf("%s would have %d of %d %s. Beyond the quota, Azure rejects new ones: delete unused ones, or request a higher quota (docs/runbooks/WeirLimitNear.md).", l.Resource, l.Used, l.Max, l.Name))
		case l.Name == plan.LimitAvailabilitySets:
			w.writeLine(0, "!", fmt.Sprintf("%s would have machines of up to %d of %d %s; a machine in none counts as one. Beyond the limit, Azure rejects further machines in the pool: "+
				"create machines in availability sets or scale sets, or set loadBalancerBackendPoolConfigurationType to nodeIP.", l.Resource, l.Used, l.Max, l.Name))
		default:
			w.writeLine(0, "!", fmt.Sprintf("%s would have %d of %d %s. Beyond the limit, Weir rejects Services: move some to another load balancer (docs/runbooks/WeirLimitNear.md).", l.Resource, l.Used, l.Max, l.Name))
		}
	}
}
