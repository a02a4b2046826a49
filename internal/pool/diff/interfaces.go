// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// CodeNICPool means that a pool holds network interfaces instead of addresses.
const CodeNICPool = "NICPool"

func errInterfaces(pool lb.PoolID) *armerror.Fault {
	return newRejection(CodeNICPool, "nic_pool", "pool %s holds network interfaces, and its members are to be IP addresses, so nodes neither join nor leave it: name another, or, if it is the cluster's, write loadBalancerBackendPoolConfigurationType into azure.json", pool.Name)
}

func newRejection(code, reason, format string, args ...any) *armerror.Fault {
	return &armerror.Fault{Class: armerror.Terminal, Code: code, Reason: reason, Err: fmt.Errorf(format, args...)}
}

func isDown(a lb.Address) bool { return a.AdminState == lb.Down }

// computeStates keeps a recorded Down while an unidentified interface is Down: its node may be deleted, or not report
// its machine yet.
func computeStates(observed lb.Pool, want Desired, down []netip.Addr) Change {
	states, byWeir, found := statesByIP(want.Addresses), newSet(down), map[netip.Addr]bool{}
	c, unidentified := Change{Next: observed}, false
	c.Next.Addresses = slices.Clone(observed.Addresses)
	for i := range c.Next.Addresses {
		a := &c.Next.Addresses[i]
		ip, ok := want.nodeAddress(*a)
		if !ok {
			unidentified = unidentified || isDown(*a)
			continue
		}
		a.IP, found[ip] = ip, true
		a.AdminState = c.setAdminState(*a, states[ip], byWeir)
	}
	for _, ip := range down {
		if unidentified && !found[ip] {
			c.managedDown = append(c.managedDown, ip)
			continue
		}
		c.recordHasMore = c.recordHasMore || c.IsEmpty() && states[ip] != lb.Down // a write may still be in flight
	}
	return c
}

func copyAddresses(shown, written lb.Pool) lb.Pool {
	if !written.NIC {
		return shown
	}
	ips := map[string]netip.Addr{}
	for _, a := range written.Addresses {
		ips[strings.ToLower(a.Interface)] = a.IP
	}
	shown.Addresses = slices.Clone(shown.Addresses)
	for i, a := range shown.Addresses {
		shown.Addresses[i].IP = ips[strings.ToLower(a.Interface)]
	}
	return shown
}
