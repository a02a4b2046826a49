// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Unused is an unused public IP made for a Service and retained for it.
type Unused struct{ lb.PublicIP }

// String returns what is retained, why, and the remedy.
func (u Unused) String() string {
	return fmt.Sprintf("public IP %s (%s) of resource group %s was created for this Service and is not in use. It is kept, because a deleted address cannot be restored; "+
		"it is deleted with the Service, or when the Service needs no public %s address any more. To delete it now, set the annotation %s to \"true\"",
		u.ID.Name, u.Address, u.ID.ResourceGroup, u.Family, service.AllowRemoval)
}

// UnusedIPs returns the public IPs retained for a Service in sync that does not use them.
func (r *Round) UnusedIPs(req *Request) (unused []Unused) {
	for _, key := range slices.Sorted(maps.Keys(r.known)) {
		if ip := r.known[key]; r.isUnused(req, ip) && r.isWanted(req, ip) {
			unused = append(unused, Unused{ip})
		}
	}
	return unused
}

func (r *Round) isUnused(req *Request, ip lb.PublicIP) bool {
	free := ip.UsedBy == "" || slices.ContainsFunc(r.removedIPs, func(id lb.ResourceID) bool { return id.Key() == ip.ID.Key() })
	settled := req.Err == nil && req.Desired != nil && !req.IsLeaving && !req.IsMoving && len(req.keys) == len(req.Desired.Frontends)
	return free && settled && strings.EqualFold(ManagedOwner(ip, r.cfg.ClusterName), req.Owner) && !slices.Contains(req.keys, ip.ID.Key())
}
