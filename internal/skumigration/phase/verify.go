// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// addVerify adds a stop for each misplaced address: no later phase restores it.
func (s *Steps) addVerify(j Journal, snapshot Snapshot) {
	for _, b := range j.LoadBalancers {
		balancer, _ := snapshot.findLoadBalancer(b.ID)
		for _, a := range b.Addresses {
			if reason := a.misplacedReason(balancer, snapshot); reason != "" {
				s.addStop(a.String() + ": " + reason)
			}
		}
	}
}

// misplacedReason returns "" if the address is in its place.
func (a Address) misplacedReason(on lb.LoadBalancer, snapshot Snapshot) string {
	switch {
	case a.IsClaim:
		return "Azure refuses it to the load balancer: " + a.RejectReason
	case a.PublicIP == "":
		if slices.ContainsFunc(on.Frontends, func(f lb.Frontend) bool { return f.PrivateIP == a.IP && strings.EqualFold(f.Subnet, a.Subnet) }) {
			return ""
		}
		return "no frontend of the load balancer has it"
	}
	ip, found := snapshot.findPublicIP(a.PublicIP)
	switch {
	case !found:
		return "the public IP does not exist"
	case a.IP.IsValid() && ip.Address != a.IP:
		return fmt.Sprintf("the public IP has the address %s now", ip.Address)
	case ip.SKU != lb.Standard || !ip.Static:
		return "the public IP is not Standard and Static"
	case ip.UsedBy != "" && !slices.ContainsFunc(on.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.PublicIP, a.PublicIP) }):
		return "the public IP is in use by " + ip.UsedBy
	case ip.UsedBy == "":
		return "nothing has the public IP"
	}
	return ""
}

// ServiceAddresses splits the addresses of a Service by whether they are in their final place.
func (j Journal) ServiceAddresses(s Service, snapshot Snapshot) (kept, lost []netip.Addr) {
	for _, b := range j.LoadBalancers {
		on, _ := snapshot.findLoadBalancer(b.ID)
		for _, a := range b.Addresses {
			owner, _, _ := strings.Cut(a.Frontend, "-")
			switch {
			case !a.IP.IsValid() || !strings.EqualFold(owner, s.Owner) && !slices.Contains(s.Addresses, a.IP):
			case a.misplacedReason(on, snapshot) != "":
				lost = append(lost, a.IP)
			default:
				kept = append(kept, a.IP)
			}
		}
	}
	return kept, lost
}
