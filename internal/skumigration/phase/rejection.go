// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
)

// unknownHolderTimeout exceeds the duration of a deletion.
const unknownHolderTimeout = 10 * time.Minute

// RecordRejection records Azure's terminal error for a load balancer's frontends, and reports a change.
// Rejected addresses are retried after the others, one by one if the message names none. Errors
// that don't concern addresses change nothing.
func (j Journal) RecordRejection(id lb.LoadBalancerID, snapshot Snapshot, code, message string, now time.Time) (Journal, bool) {
	at := slices.IndexFunc(j.LoadBalancers, func(b LoadBalancer) bool { return b.ID.Key() == id.Key() })
	reason := classifyRejection(code, message)
	if at < 0 || reason == rejectionUnrelated {
		return j, false
	}
	j = j.clone()
	b := &j.LoadBalancers[at]
	balancer, _ := snapshot.findLoadBalancer(id)
	missing := b.missingFrontends(balancer, snapshot)
	holder, by := j.findHolder(message)
	if balancer.SKU == lb.Standard && holder == holderMigration { // the load balancer is the requester, not a holder being deleted
		holder = holderUnknown
	}
	named, changed := parseAddresses(message), false
	for i := range b.Addresses {
		a := &b.Addresses[i]
		requested := slices.ContainsFunc(missing, func(f lb.Frontend) bool { return f.Name == a.Frontend })
		if !requested || a.PublicIP != "" && reason == rejectionInvalid || holder != holderMigration && len(missing) > 1 && !named[a.IP] {
			continue
		}
		if a.RejectedSince.IsZero() {
			a.RejectedSince = now
		}
		a.RejectReason, a.RejectCount, changed = humanize.FormatMessage(code+": "+message, maxReasonLength), a.RejectCount+1, true
		if by != "" {
			a.RejectReason = code + ": " + by + " has it"
		}
		a.HolderDeleting = holder == holderMigration && now.Sub(a.RejectedSince) < unknownHolderTimeout // otherwise the message may name the requester
		late := holder == holderUnknown && now.Sub(a.RejectedSince) >= unknownHolderTimeout
		a.IsClaim = reason == rejectionInvalid || holder == holderOther || late
	}
	if !changed && len(missing) > 1 {
		b.OneAtATime, changed = true, true
	}
	return j, changed
}

// rejection classifies a rejection.
type rejection string

const (
	rejectionUnrelated rejection = ""        // not about addresses
	rejectionInUse     rejection = "inUse"   // the address is in use
	rejectionInvalid   rejection = "invalid" // the subnet is invalid, or doesn't contain the address
)

// classifyRejection: an invalid reference to a subnet has its own code.
func classifyRejection(code, text string) rejection {
	switch {
	case strings.Contains(code, "PublicIPAddressInUse"), strings.Contains(code, "PrivateIPAddress") && (strings.Contains(code, "InUse") || strings.Contains(code, "Allocated")):
		return rejectionInUse
	case strings.Contains(code, "PrivateIPAddress"), strings.Contains(code, "Subnet"),
		strings.Contains(code, "Reference") && strings.Contains(strings.ToLower(text), "/subnets/"):
		return rejectionInvalid
	}
	return rejectionUnrelated
}

// addressHolder is the kind of resource that holds an address.
type addressHolder string

const (
	holderUnknown   addressHolder = ""
	holderMigration addressHolder = "ours"  // a load balancer of the migration, possibly being deleted
	holderOther     addressHolder = "other" // any other resource
)

var resourcePattern = regexp.MustCompile(`(?i)/providers/[a-z]+\.[a-z]+/([a-z]+)/([a-z0-9._-]*[a-z0-9_])`)

// findHolder parses Azure's message, which may also name the requesting load balancer, the subnet or
// the public IP.
func (j Journal) findHolder(message string) (holder addressHolder, by string) {
	for _, found := range resourcePattern.FindAllStringSubmatch(message, -1) {
		switch kind := strings.ToLower(found[1]); {
		case kind == "virtualnetworks" || kind == "publicipaddresses":
		case kind == "loadbalancers" && j.hasLoadBalancer(found[2]):
			holder, by = holderMigration, found[1]+"/"+found[2]
		default:
			return holderOther, found[1] + "/" + found[2]
		}
	}
	if holder == holderMigration {
		return holder, by
	}
	for _, word := range strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" '\"`,;()", r) }) {
		if word = strings.TrimRight(word, ".:"); j.hasLoadBalancer(word) {
			return holderMigration, "loadBalancers/" + word
		}
	}
	return holderUnknown, ""
}

// hasLoadBalancer compares names only: all load balancers are in one resource group.
func (j Journal) hasLoadBalancer(name string) bool {
	return slices.ContainsFunc(j.LoadBalancers, func(b LoadBalancer) bool { return strings.EqualFold(b.ID.Name, name) })
}

func parseAddresses(text string) map[netip.Addr]bool {
	addresses := map[netip.Addr]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF.:", r) }) {
		if ip, err := netip.ParseAddr(strings.TrimRight(word, ".:")); err == nil {
			addresses[ip] = true
		}
	}
	return addresses
}
