// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/lb"
)

// maxHealthPools limits the reads of health for one explanation: Azure counts each as a write.
const maxHealthPools = 10

// addHealth adds what Azure's probes report. A failure is one line, and everything else remains.
func (r Reader) addHealth(ctx context.Context, story *Explanation) {
	if r.Health == nil {
		return
	}
	for i := range story.Pools {
		p := &story.Pools[i]
		if i >= maxHealthPools {
			story.HealthError = fmt.Sprintf("of %d pools, that of %d was read", len(story.Pools), maxHealthPools)
			return
		}
		reported, err := r.Health(ctx, p.Namespace, p.Name)
		if err != nil { // that of the other pools fails for the same reason, or is read with its own command
			story.HealthError = strings.Join(strings.Fields(err.Error()), " ")
			return
		}
		p.HasHealth = true
		for j := range p.Members {
			p.Members[j].Health = reported[p.Members[j].Address]
		}
	}
}

// ReadHealth returns a Reader.Health that asks the leader.
func ReadHealth(leader app.Connection) func(ctx context.Context, namespace, pool string) (map[string]string, error) {
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
	for ip, all := range of {
		texts[ip] = strings.Join(slices.Compact(all), "; ")
	}
	return texts
}
