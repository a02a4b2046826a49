// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Desired is a pool's desired membership and its record.
type Desired struct {
	Addresses []lb.Address
	// Retained Addresses stay if present, but are not added.
	Retained []netip.Addr
	// SharedAddresses are further nodes that claim an address of Addresses with another machine. UnresolvedIPs are
	// addresses of nodes with an unknown machine. Members with one of these stay.
	SharedAddresses []lb.Address
	UnresolvedIPs   []netip.Addr
	// IsOwnAddress reports whether an address found on takeover is Weir's: a node's, or any in a pool that Weir made.
	IsOwnAddress func(netip.Addr) bool
	// IsExclusive is true if no other client sets nodes Down: Weir made the pool.
	IsExclusive bool
	// ClusterMark marks the members that this cluster writes; "" if no other cluster writes the pool.
	ClusterMark string
	// AddressOf returns the recorded address of a machine's node; false if it is not the cluster's.
	AddressOf func(machine string) (netip.Addr, bool)
	Machines  *Machines
	Record    Record
}

// Record is a pool's persisted record.
type Record struct {
	// Written are the addresses that Weir added, Down those that it set Down.
	Written, Down []netip.Addr
	// Instances maps instances of uniform scale sets to their addresses, which Azure does not report.
	Instances map[string]netip.Addr
	Adopted   bool
}

// Intent is recorded before a write.
type Intent struct {
	Written, Down       []netip.Addr
	Instances           map[string]netip.Addr
	Desired, Observed   int
	Add, Remove, Update int
	// OnlyStates is true for admin states of network interfaces only, which is no takeover.
	OnlyStates bool
}

func (d Desired) limitRetained(shown []lb.Address) Desired {
	if len(d.Retained) == 0 {
		return d
	}
	states := statesByIP(shown)
	d.Addresses = slices.DeleteFunc(slices.Clone(d.Addresses), func(a lb.Address) bool {
		_, ok := states[a.IP]
		return !ok && slices.Contains(d.Retained, a.IP)
	})
	return d
}

type managedSets struct {
	written map[netip.Addr]struct{}
	// down is nil if admin states are not managed.
	down map[netip.Addr]struct{}
}

func newSet(ips []netip.Addr) map[netip.Addr]struct{} {
	set := make(map[netip.Addr]struct{}, len(ips))
	for _, ip := range ips {
		set[ip] = struct{}{}
	}
	return set
}

// findManaged returns the record or, on takeover, the addresses found in the pool. On takeover, a Down counts as set by
// Weir, for an earlier BackendPool, if the node is leaving and no other client writes the pool.
func findManaged(observed lb.Pool, want Desired, adminState bool) managedSets {
	recorded := want.Record
	managed := managedSets{written: newSet(recorded.Written)}
	if adminState {
		managed.down = newSet(recorded.Down)
	}
	if !recorded.Adopted {
		for _, a := range observed.Addresses {
			if want.IsOwnAddress(a.IP) || want.isOwn(a) {
				managed.written[a.IP] = struct{}{}
			}
			if adminState && want.IsExclusive && isDown(a) && slices.ContainsFunc(want.Addresses, func(w lb.Address) bool { return w.IP == a.IP && isDown(w) }) {
				managed.down[a.IP] = struct{}{}
			}
		}
	}
	for _, a := range observed.Addresses {
		if want.isOfOtherCluster(a) {
			delete(managed.written, a.IP)
			delete(managed.down, a.IP)
		}
	}
	return managed
}

// filterDown returns the wanted ips that are Down; another client has reset the others.
func filterDown(ips []netip.Addr, wanted []lb.Address, observed lb.Pool) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(wanted, func(a lb.Address) bool { return a.IP == ip }) ||
			!slices.ContainsFunc(observed.Addresses, func(a lb.Address) bool { return a.IP == ip && a.AdminState == lb.Down })
	})
}

// CodeOverlappingNodes means that another cluster has written addresses of this cluster's nodes.
const CodeOverlappingNodes = "OverlappingNodes"

const (
	markPrefix = ".weir-"
	markLength = 8
	// maxAddressName is the longest name that Azure accepts.
	maxAddressName = 80
)

// ClusterMark identifies a cluster in members' names by the UID of its kube-system namespace; "" if unknown.
func ClusterMark(uid string) string {
	if uid == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:])[:markLength]
}

func markName(name, mark string) string {
	if mark == "" {
		return name
	}
	suffix := markPrefix + mark
	return name[:min(len(name), maxAddressName-len(suffix))] + suffix
}

func markOf(name string) string {
	i := strings.LastIndex(strings.ToLower(name), markPrefix)
	if i < 0 || len(name) != i+len(markPrefix)+markLength {
		return ""
	}
	return strings.ToLower(name[i+len(markPrefix):])
}

func (d Desired) isOwn(a lb.Address) bool {
	return d.ClusterMark != "" && markOf(a.Name) == d.ClusterMark
}

func (d Desired) isOfOtherCluster(a lb.Address) bool {
	mark := markOf(a.Name)
	return d.ClusterMark != "" && mark != "" && mark != d.ClusterMark
}

// findOverlap returns nodes' addresses that another cluster has written: wanted ones, and on takeover all.
func (d Desired) findOverlap(observed lb.Pool) (ips []netip.Addr) {
	for _, a := range observed.Addresses {
		isNode := slices.ContainsFunc(d.Addresses, func(w lb.Address) bool { return w.IP == a.IP }) || !d.Record.Adopted && d.IsOwnAddress(a.IP)
		if isNode && d.isOfOtherCluster(a) {
			ips = append(ips, a.IP)
		}
	}
	return sortIPs(ips)
}

func withoutOverlap(wanted []lb.Address, overlap []netip.Addr) []lb.Address {
	if len(overlap) == 0 {
		return wanted
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(a lb.Address) bool { return slices.Contains(overlap, a.IP) })
}
