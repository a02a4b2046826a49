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

// unknownHolder is how long an address is waited for of which Azure does not say what holds it. A deletion takes less.
const unknownHolder = 10 * time.Minute

// Refuse returns the journal after Azure has refused to make the frontends of a load balancer, for good and
// with this code and message, and whether that changes it. An address that Azure refuses is asked for again after the
// others. If it is not clear which one Azure means they are asked for one by one. Any other refusal says nothing
// about addresses.
func (j Journal) Refuse(id lb.LoadBalancerID, seen Seen, code, message string, now time.Time) (Journal, bool) {
	at := slices.IndexFunc(j.Balancers, func(b Balancer) bool { return b.ID.Key() == id.Key() })
	why := refusalOf(code, message)
	if at < 0 || why == unrelated {
		return j, false
	}
	j = j.clone()
	b := &j.Balancers[at]
	has, _ := seen.balancer(id)
	asked := b.missing(has, seen)
	holder, by := j.holder(message)
	if has.SKU == lb.Standard && holder == ours { // it asks, and is not being deleted
		holder = nobody
	}
	named, changed := addressesIn(message), false
	for i := range b.Addresses {
		a := &b.Addresses[i]
		asks := slices.ContainsFunc(asked, func(f lb.Frontend) bool { return f.Name == a.Frontend })
		if !asks || a.PublicIP != "" && why == unfit || holder != ours && len(asked) > 1 && !named[a.IP] {
			continue
		}
		if a.Since.IsZero() {
			a.Since = now
		}
		a.Refused, a.Times, changed = words.Sentence(code+": "+message, longestTold), a.Times+1, true
		if by != "" {
			a.Refused = code + ": " + by + " has it"
		}
		a.Held = holder == ours && now.Sub(a.Since) < unknownHolder // else the message may name what asks
		late := holder == nobody && now.Sub(a.Since) >= unknownHolder
		a.Owed = why == unfit || holder == other || late
	}
	if !changed && len(asked) > 1 {
		b.OneByOne, changed = true, true
	}
	return j, changed
}

// refusal is what Azure refuses.
type refusal string

const (
	unrelated refusal = ""      // nothing about addresses
	held      refusal = "held"  // an address that something holds
	unfit     refusal = "unfit" // an address of no subnet, or the subnet
)

// refusalOf returns what Azure refuses. The reference to a subnet that is not there has a code of its own.
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

// holder is what has an address, as far as Azure names it.
type holder string

const (
	nobody holder = ""
	ours   holder = "ours"  // a load balancer of the migration, which may be being deleted
	other  holder = "other" // any other resource
)

// resourceIn finds the type and name of resources in a text.
var resourceIn = regexp.MustCompile(`(?i)/providers/[a-z]+\.[a-z]+/([a-z]+)/([a-z0-9._-]*[a-z0-9_])`)

// holder returns what holds an address, by a message of Azure, and its type and name. The message may name what asks for
// the address, too, a load balancer of the migration, and the subnet or the public IP.
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

// has reports whether a load balancer of the journal has this name. All are of one resource group.
func (j Journal) has(name string) bool {
	return slices.ContainsFunc(j.Balancers, func(b Balancer) bool { return strings.EqualFold(b.ID.Name, name) })
}

// addressesIn returns the IP addresses that a text names.
func addressesIn(text string) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF.:", r) }) {
		if ip, err := netip.ParseAddr(strings.TrimRight(word, ".:")); err == nil {
			all[ip] = true
		}
	}
	return all
}
