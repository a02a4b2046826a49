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
func (g *group) fresh(a Admission, m meaning) lb.SecurityRule {
	return lb.SecurityRule{
		Name: g.name(a, m), Priority: g.priority(a.Access), Direction: lb.Inbound, Access: a.Access, Protocol: a.Protocol,
		Sources: slices.Clone(a.Sources), SourcePorts: []string{lb.Any}, DestinationPorts: slices.Clone(a.Ports),
	}
}

// name returns a name that no rule has, whatever the capitals. It is the one that the Azure
// cloud provider gives a rule for the same sources and ports, so that it knows it as its own.
func (g *group) name(a Admission, m meaning) string {
	name := Prefix + "deny-all_" + string(a.Family)
	if all := (meaning{lb.Deny, a.Family, lb.Any, lb.Any, lb.Any}); m != all {
		as := func(text string) string { return text }
		sum := md5.Sum([]byte(strings.Join([]string{a.Protocol, folded(a.Sources, as), folded(a.Ports, as)}, "_"))) //nolint:gosec // see above
		name = Prefix + strings.ToLower(string(a.Access)) + "_" + string(a.Family) + "_" + hex.EncodeToString(sum[:])
	}
	next := name
	for n := 2; g.names[strings.ToLower(next)]; n++ {
		next = name + "_" + strconv.Itoa(n)
	}
	return next
}

// room is what of a group's room is in use.
type room struct{ rules, sources, destinations int }

func (u *room) add(r lb.SecurityRule) {
	u.rules++
	u.sources += prefixes(r.Sources)
	u.destinations += prefixes(r.Destinations)
}

func (u room) and(more room) *room {
	return &room{u.rules + more.rules, u.sources + more.sources, u.destinations + more.destinations}
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
