// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Location is the current location of a recorded address.
type Location struct {
	Text string
	// Lost means for good.
	Lost, IsClaim bool
}

// Locate describes where an address is now.
func (a Address) Locate(of LoadBalancer, snapshot Snapshot) Location {
	on, exists := snapshot.findLoadBalancer(of.ID)
	if a.PublicIP == "" {
		hasFrontend := exists && slices.ContainsFunc(on.Frontends, func(f lb.Frontend) bool {
			return f.PrivateIP == a.IP && strings.EqualFold(f.Subnet, a.Subnet)
		})
		switch {
		case hasFrontend:
			return Location{Text: fmt.Sprintf("on load balancer %s, %s", on.ID.Name, on.SKU)}
		case a.IsClaim:
			return Location{Text: a.claimText(), IsClaim: true}
		case a.RejectReason != "":
			return Location{Text: "on no load balancer, to be requested again: " + a.RejectReason}
		}
		return Location{Text: "on no load balancer, to be requested again"}
	}
	ip, found := snapshot.findPublicIP(a.PublicIP)
	switch {
	case !found:
		return Location{Text: "the public IP does not exist", Lost: true}
	case a.IP.IsValid() && ip.Address != a.IP:
		return Location{Text: fmt.Sprintf("the public IP has the address %s now", ip.Address), Lost: true}
	}
	method := "Dynamic"
	if ip.Static {
		method = "Static"
	}
	kind := fmt.Sprintf("public IP %s and %s", ip.SKU, method)
	switch {
	case exists && slices.ContainsFunc(on.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.PublicIP, a.PublicIP) }):
		return Location{Text: fmt.Sprintf("on load balancer %s, %s; %s", on.ID.Name, on.SKU, kind)}
	case ip.UsedBy != "" && (Journal{LoadBalancers: []LoadBalancer{of}}).deletedHolder(ip, snapshot) == "":
		return Location{Text: "in use by " + ip.UsedBy + "; " + kind, Lost: true}
	case a.IsClaim:
		return Location{Text: a.claimText() + "; " + kind, IsClaim: true}
	}
	return Location{Text: "kept by its public IP, on no load balancer; " + kind}
}

func (a Address) claimText() string {
	return "on no load balancer; its Service requests it and gets no other address. Azure rejects it: " + a.RejectReason
}
