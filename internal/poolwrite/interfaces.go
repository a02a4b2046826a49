// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// Of a pool of network interfaces a write sets the admin states alone: interfaces join and leave
// by their own writes, see members.go.

// CodeNICPool is the fault code of a pool that holds network interfaces.
const CodeNICPool = "NICPool"

func errInterfaces(pool lb.PoolID) error {
	return fmt.Errorf("pool %s holds network interfaces, and its members are to be IP addresses, so nodes neither join nor leave it: name another, or, if it is the cluster's, write loadBalancerBackendPoolConfigurationType into azure.json", pool.Name)
}

func refusal(err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	return &fault.Fault{Class: fault.Terminal, Code: CodeNICPool, Reason: "nic_pool", Err: err}
}

func isDown(a lb.Address) bool { return a.AdminState == lb.Down }

// direct computes the admin states of the interfaces that belong to nodes: Down for a member
// that leaves, and whatever else was set Down by us is taken back. A node may be gone, or not
// say yet what its machine is, and come back to it: what is on record stays there as long as an
// interface is Down that may be its.
func direct(observed lb.Pool, want Desired, down []netip.Addr) Change {
	states, byUs, found := map[netip.Addr]string{}, map[netip.Addr]struct{}{}, map[netip.Addr]bool{}
	for _, a := range want.Addresses {
		states[a.IP] = a.AdminState
	}
	for _, ip := range down {
		byUs[ip] = struct{}{}
	}
	c, nobodys := Change{Next: observed}, false
	c.Next.Addresses = slices.Clone(observed.Addresses)
	for i := range c.Next.Addresses {
		a := &c.Next.Addresses[i]
		ip, ok := want.AddressOf(a.Machine)
		if !ok {
			nobodys = nobodys || isDown(*a)
			continue
		}
		a.IP, found[ip] = ip, true
		a.AdminState = c.direct(*a, states[ip], byUs)
	}
	for _, ip := range down {
		if nobodys && !found[ip] {
			c.down = append(c.down, ip)
			continue
		}
		c.unseen = c.unseen || c.none() && states[ip] != lb.Down // a write of ours may still be on its way
	}
	return c
}

// namedAs gives the interfaces that Azure shows the addresses that they have in what was
// written.
func namedAs(shown, written lb.Pool) lb.Pool {
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
