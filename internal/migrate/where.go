// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Whereabouts is the current location of a recorded address.
type Whereabouts struct {
	Text string
	// Lost means for good.
	Lost, Owed bool
}

// Where describes where an address is now.
func (a Address) Where(of Balancer, snapshot Seen) Whereabouts {
	on, exists := snapshot.balancer(of.ID)
	if a.PublicIP == "" {
		has := exists && slices.ContainsFunc(on.Frontends, func(f lb.Frontend) bool {
			return f.PrivateIP == a.IP && strings.EqualFold(f.Subnet, a.Subnet)
		})
		switch {
		case has:
			return Whereabouts{Text: fmt.Sprintf("on load balancer %s, %s", on.ID.Name, on.SKU)}
		case a.Owed:
			return Whereabouts{Text: a.owed(), Owed: true}
		case a.Refused != "":
			return Whereabouts{Text: "on no load balancer, to be asked for again: " + a.Refused}
		}
		return Whereabouts{Text: "on no load balancer, to be asked for again"}
	}
	ip, found := snapshot.publicIP(a.PublicIP)
	switch {
	case !found:
		return Whereabouts{Text: "the public IP is gone", Lost: true}
	case a.IP.IsValid() && ip.Address != a.IP:
		return Whereabouts{Text: fmt.Sprintf("the public IP has the address %s now", ip.Address), Lost: true}
	}
	method := "Dynamic"
	if ip.Static {
		method = "Static"
	}
	kind := fmt.Sprintf("public IP %s and %s", ip.SKU, method)
	switch {
	case exists && slices.ContainsFunc(on.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.PublicIP, a.PublicIP) }):
		return Whereabouts{Text: fmt.Sprintf("on load balancer %s, %s; %s", on.ID.Name, on.SKU, kind)}
	case ip.UsedBy != "" && (Journal{Balancers: []Balancer{of}}).goneWith(ip, snapshot) == "":
		return Whereabouts{Text: "in use by " + ip.UsedBy + "; " + kind, Lost: true}
	case a.Owed:
		return Whereabouts{Text: a.owed() + "; " + kind, Owed: true}
	}
	return Whereabouts{Text: "kept by its public IP, on no load balancer; " + kind}
}

func (a Address) owed() string {
	return "on no load balancer; its Service asks for it and gets no other address. Azure refuses it: " + a.Refused
}
