// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/lab/armemu"
)

func doFlows(s *Stage, a *argReader) (string, error) {
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	rules := s.emulator.Flows(s.start, time.Now())
	if len(rules) == 0 {
		return "", fmt.Errorf("no pool has a probe")
	}
	var out strings.Builder
	for _, r := range rules {
		out.WriteString(formatFlows(r))
	}
	return out.String(), nil
}

// formatFlows formats the members that take new flows and the failures so far.
func formatFlows(r armemu.RuleFlows) string {
	var takers []string
	for _, a := range r.Addresses {
		switch {
		case a.TakesNewFlows && a.Alive:
			takers = append(takers, a.Name)
		case a.TakesNewFlows:
			takers = append(takers, a.Name+" (dead)")
		}
	}
	slices.Sort(takers)
	if len(takers) == 0 {
		takers = []string{"nobody"}
	}
	text := fmt.Sprintf("%s: new flows to %s; misdirected %.3fs", r.Rule[strings.LastIndex(r.Rule, "/")+1:], strings.Join(takers, ", "), r.MisdirectedSeconds)
	if r.UnservedSeconds > 0 {
		text += fmt.Sprintf(", to nobody %.3fs", r.UnservedSeconds)
	}
	return text + "\n"
}

// probeThreshold is the number of consecutive failed probes that take an address out.
const probeThreshold = 2

// addLoadBalancingRule adds a load balancing rule with a health probe to a pool, named after it.
func (s *Stage) addLoadBalancingRule(k *pool, interval time.Duration) error {
	raw, _ := s.emulator.Get(k.id.LoadBalancer.String())
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	properties, _ := body["properties"].(map[string]any)
	add := func(collection string, of map[string]any) map[string]any {
		list, _ := properties[collection].([]any)
		list = slices.DeleteFunc(list, func(c any) bool {
			entry, _ := c.(map[string]any)
			return entry["name"] == k.id.Name
		})
		properties[collection] = append(list, map[string]any{"name": k.id.Name, "properties": of})
		return map[string]any{"id": k.id.LoadBalancer.String() + "/" + collection + "/" + k.id.Name}
	}
	add("loadBalancingRules", map[string]any{
		"frontendIPConfiguration": add("frontendIPConfigurations", nil),
		"probe":                   add("probes", map[string]any{"intervalInSeconds": int(interval.Seconds()), "probeThreshold": probeThreshold}),
		"backendAddressPool":      map[string]any{"id": k.id.String()},
	})
	balanced, err := json.Marshal(body)
	if err != nil {
		return err
	}
	s.invalidateSnapshots()
	return s.emulator.Put(k.id.LoadBalancer.String(), balanced)
}
