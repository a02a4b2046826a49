// SPDX-License-Identifier: Apache-2.0

package service

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Priorities of managed rules, as in cloud-provider-azure. Allow rules count up from the first and deny rules
// down from the last, so allow takes precedence: with at most 1,000 rules per group they never meet.
const (
	firstPriority = 500
	lastPriority  = 4096
)

// newRule returns a new rule for an admission, without destinations.
func (g *group) newRule(a AccessRule, m ruleKey) lb.SecurityRule {
	return lb.SecurityRule{
		Name: g.ruleName(a, m), Priority: g.nextPriority(a.Access), Direction: lb.Inbound, Access: a.Access, Protocol: a.Protocol,
		Sources: slices.Clone(a.Sources), SourcePorts: []string{lb.Any}, DestinationPorts: slices.Clone(a.Ports),
	}
}

// ruleName returns a rule name that is unique ignoring case. It equals the name in cloud-provider-azure for the
// same sources and ports, so that it recognizes the rule.
func (g *group) ruleName(a AccessRule, m ruleKey) string {
	name := SecurityRulePrefix + "deny-all_" + string(a.Family)
	if key := (ruleKey{lb.Deny, a.Family, lb.Any, lb.Any, lb.Any}); m != key {
		as := func(text string) string { return text }
		sum := md5.Sum([]byte(strings.Join([]string{a.Protocol, normalizeList(a.Sources, as), normalizeList(a.Ports, as)}, "_"))) //nolint:gosec // see above
		name = SecurityRulePrefix + strings.ToLower(string(a.Access)) + "_" + string(a.Family) + "_" + hex.EncodeToString(sum[:])
	}
	next := name
	for n := 2; g.names[strings.ToLower(next)]; n++ {
		next = name + "_" + strconv.Itoa(n)
	}
	return next
}

// capacity is usage of a group's capacity.
type capacity struct{ rules, sources, destinations int }

func (c *capacity) addRule(r lb.SecurityRule) {
	c.rules++
	c.sources += countPrefixes(r.Sources)
	c.destinations += countPrefixes(r.Destinations)
}

func (c capacity) plus(more capacity) *capacity {
	return &capacity{c.rules + more.rules, c.sources + more.sources, c.destinations + more.destinations}
}

// countPrefixes counts addresses and ranges; service tags do not count in Azure.
func countPrefixes(list []string) int {
	n := 0
	for _, text := range list {
		if _, err := netip.ParsePrefix(normalizeSource(text)); err == nil {
			n++
		}
	}
	return n
}

// ErrSecurityGroupFull means the security group is full.
var ErrSecurityGroupFull = errors.New("the security group has no room for the Service")

// exceededLimit returns which Azure limit is exceeded, or nil.
func (c *capacity) exceededLimit() error {
	for _, limit := range []struct {
		count, most int
		noun        string
	}{
		{c.rules, lb.MaxSecurityRules, "rules"},
		{c.sources, lb.MaxSecurityPrefixes, "addresses and ranges as sources"},
		{c.destinations, lb.MaxSecurityPrefixes, "addresses as destinations"},
	} {
		if limit.count > limit.most {
			return fmt.Errorf("%w: it would have %d %s, and Azure allows %d", ErrSecurityGroupFull, limit.count, limit.noun, limit.most)
		}
	}
	return nil
}
