// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/lb"
)

// NewHealthReader returns a function that has the leader read what Azure's probes report of the members of a BackendPool, by address.
func NewHealthReader(leader app.Connection) func(ctx context.Context, namespace, pool string) (map[string]string, error) {
	return func(ctx context.Context, namespace, pool string) (map[string]string, error) {
		rules, err := app.FetchHealth(ctx, leader, namespace, pool)
		if err != nil {
			return nil, err
		}
		return summarizeHealth(rules), nil
	}
}

// summarizeHealth returns a text for each address. Where the probes differ, each is named by a rule.
func summarizeHealth(rules []app.RuleHealth) map[string]string {
	of := map[string][]string{}
	for _, rule := range rules {
		members := slices.SortedFunc(slices.Values(rule.Members), func(a, b lb.MemberHealth) int { return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Reason, b.Reason)) })
		for _, m := range members {
			text := m.Text()
			if len(rules) > 1 {
				text = "rule " + rule.Rule + ": " + text
			}
			of[m.IP.String()] = append(of[m.IP.String()], text)
		}
	}
	texts := make(map[string]string, len(of))
	for ip, answers := range of {
		texts[ip] = strings.Join(slices.Compact(answers), "; ")
	}
	return texts
}
