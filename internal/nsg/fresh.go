// SPDX-License-Identifier: Apache-2.0

package nsg

import (
	"crypto/md5" //nolint:gosec // the name of a rule, which guards nothing
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// The priorities of managed rules, as the Azure cloud provider has them. What is let in goes
// up from the first, and what is kept out goes down from the last, so that whoever is let in
// is not kept out: with at most 1,000 rules in a group the two never meet.
const (
	firstPriority = 500
	lastPriority  = 4096
)

// fresh is a new rule for an admission, without destinations yet.
func (g *group) fresh(a Admission) lb.SecurityRule {
	return lb.SecurityRule{
		Name: g.name(a), Priority: g.priority(a.Access), Direction: lb.Inbound, Access: a.Access, Protocol: a.Protocol,
		Sources: slices.Clone(a.Sources), SourcePorts: []string{lb.Any}, DestinationPorts: slices.Clone(a.Ports),
	}
}

// name returns a name that no rule has, whatever the capitals. It is the one that the Azure
// cloud provider gives a rule for the same sources and ports, so that it knows it as its own.
func (g *group) name(a Admission) string {
	name := Prefix + "deny-all_" + string(a.Family)
	m := a.meaning()
	if all := (meaning{lb.Deny, a.Family, lb.Any, lb.Any, lb.Any}); m != all {
		as := func(text string) string { return text }
		sum := md5.Sum([]byte(strings.Join([]string{a.Protocol, folded(a.Sources, as), folded(a.Ports, as)}, "_"))) //nolint:gosec // see above
		name = Prefix + strings.ToLower(string(a.Access)) + "_" + string(a.Family) + "_" + hex.EncodeToString(sum[:])
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(g.rules, func(r lb.SecurityRule) bool { return strings.EqualFold(r.Name, name) })
	}
	next := name
	for n := 2; taken(next); n++ {
		next = name + "_" + strconv.Itoa(n)
	}
	return next
}

// priority returns the first one that is free. Only rules of the same direction compete.
func (g *group) priority(access lb.Access) int32 {
	taken := map[int32]bool{}
	for _, r := range g.rules {
		if strings.EqualFold(string(r.Direction), string(lb.Inbound)) {
			taken[r.Priority] = true
		}
	}
	n, step := int32(firstPriority), int32(1)
	if access == lb.Deny {
		n, step = lastPriority, -1
	}
	for taken[n] {
		n += step
	}
	return n
}

// room is what of a group's room is in use.
type room struct{ rules, sources, destinations int }

func (u *room) add(r lb.SecurityRule) {
	u.rules++
	u.sources += prefixes(r.Sources)
	u.destinations += prefixes(r.Destinations)
}

// prefixes counts what counts for Azure: addresses and ranges, and no tags.
func prefixes(list []string) int {
	n := 0
	for _, text := range list {
		if _, err := netip.ParsePrefix(prefix(text)); err == nil {
			n++
		}
	}
	return n
}

// ErrNoRoom says that the security group cannot hold what a Service asks for.
var ErrNoRoom = errors.New("the security group has no room for the Service")

// exceeded says which of Azure's limits the group exceeds; nil if none.
func (u *room) exceeded() error {
	for _, limit := range []struct {
		is, most int
		what     string
	}{
		{u.rules, lb.MostSecurityRules, "rules"},
		{u.sources, lb.MostSecurityPrefixes, "addresses and ranges as sources"},
		{u.destinations, lb.MostSecurityPrefixes, "addresses as destinations"},
	} {
		if limit.is > limit.most {
			return fmt.Errorf("%w: it would have %d %s, and Azure takes %d", ErrNoRoom, limit.is, limit.what, limit.most)
		}
	}
	return nil
}
