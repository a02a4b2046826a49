// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/words"
)

// unknownHolder exceeds the duration of a deletion.
const unknownHolder = 10 * time.Minute

// Refuse records Azure's terminal error for a load balancer's frontends, and reports a change.
// Rejected addresses are retried after the others, one by one if the message names none. Errors
// that don't concern addresses change nothing.
func (j Journal) Refuse(id lb.LoadBalancerID, snapshot Seen, code, message string, now time.Time) (Journal, bool) {
	at := slices.IndexFunc(j.Balancers, func(b Balancer) bool { return b.ID.Key() == id.Key() })
	reason := refusalOf(code, message)
	if at < 0 || reason == unrelated {
		return j, false
	}
	j = j.clone()
	b := &j.Balancers[at]
	has, _ := snapshot.balancer(id)
	missing := b.missing(has, snapshot)
	holder, by := j.holder(message)
	if has.SKU == lb.Standard && holder == ours { // the load balancer is the requester, not a holder being deleted
		holder = nobody
	}
	named, changed := addressesIn(message), false
	for i := range b.Addresses {
		a := &b.Addresses[i]
		asks := slices.ContainsFunc(missing, func(f lb.Frontend) bool { return f.Name == a.Frontend })
		if !asks || a.PublicIP != "" && reason == unfit || holder != ours && len(missing) > 1 && !named[a.IP] {
			continue
		}
		if a.Since.IsZero() {
			a.Since = now
		}
		a.Refused, a.Times, changed = words.Sentence(code+": "+message, longestTold), a.Times+1, true
		if by != "" {
			a.Refused = code + ": " + by + " has it"
		}
		a.Held = holder == ours && now.Sub(a.Since) < unknownHolder // otherwise the message may name the requester
		late := holder == nobody && now.Sub(a.Since) >= unknownHolder
		a.Owed = reason == unfit || holder == other || late
	}
	if !changed && len(missing) > 1 {
		b.OneByOne, changed = true, true
	}
	return j, changed
}

// refusal classifies a rejection.
type refusal string

const (
	unrelated refusal = ""      // not about addresses
	held      refusal = "held"  // the address is in use
	unfit     refusal = "unfit" // the subnet is invalid, or doesn't contain the address
)

// refusalOf: an invalid reference to a subnet has its own code.
func refusalOf(code, text string) refusal {
	switch {
	case strings.Contains(code, "PublicIPAddressInUse"), strings.Contains(code, "PrivateIPAddress") && (strings.Contains(code, "InUse") || strings.Contains(code, "Allocated")):
		return held
	case strings.Contains(code, "PrivateIPAddress"), strings.Contains(code, "Subnet"),
		strings.Contains(code, "Reference") && strings.Contains(strings.ToLower(text), "/subnets/"):
		return unfit
	}
	return unrelated
}

// holder is the kind of resource that holds an address.
type holder string

const (
	nobody holder = ""
	ours   holder = "ours"  // a load balancer of the migration, possibly being deleted
	other  holder = "other" // any other resource
)

var resourceIn = regexp.MustCompile(`(?i)/providers/[a-z]+\.[a-z]+/([a-z]+)/([a-z0-9._-]*[a-z0-9_])`)

// holder parses Azure's message, which may also name the requesting load balancer, the subnet or
// the public IP.
func (j Journal) holder(message string) (is holder, by string) {
	for _, found := range resourceIn.FindAllStringSubmatch(message, -1) {
		switch kind := strings.ToLower(found[1]); {
		case kind == "virtualnetworks" || kind == "publicipaddresses":
		case kind == "loadbalancers" && j.has(found[2]):
			is, by = ours, found[1]+"/"+found[2]
		default:
			return other, found[1] + "/" + found[2]
		}
	}
	if is == ours {
		return is, by
	}
	for _, word := range strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" '\"`,;()", r) }) {
		if word = strings.TrimRight(word, ".:"); j.has(word) {
			return ours, "loadBalancers/" + word
		}
	}
	return nobody, ""
}

// has compares names only: all load balancers are in one resource group.
func (j Journal) has(name string) bool {
	return slices.ContainsFunc(j.Balancers, func(b Balancer) bool { return strings.EqualFold(b.ID.Name, name) })
}

func addressesIn(text string) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF.:", r) }) {
		if ip, err := netip.ParseAddr(strings.TrimRight(word, ".:")); err == nil {
			all[ip] = true
		}
	}
	return all
}
