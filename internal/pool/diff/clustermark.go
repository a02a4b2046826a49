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
		isNode := slices.ContainsFunc(d.Addresses, func(w lb.Address) bool { return w.IP == a.IP }) || !d.Record.Managed && d.IsManaged(a.IP)
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
