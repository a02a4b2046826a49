// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// RevertText describes what a change reverts, in Azure's terms: the present value and the desired one.
func (c Change) RevertText() string {
	text := fmt.Sprintf("%s %s: ", c.Kind, c.Name)
	switch c.Action {
	case ActionAdd:
		return text + "removed, and Weir wants it"
	case ActionRemove:
		return text + "added, and Weir does not want it"
	}
	if old, ok := c.Was.(SecurityRule); ok {
		rule, _ := c.Is.(SecurityRule)
		c.Was, c.Is = withoutAddresses(old, rule), withoutAddresses(rule, old)
	}
	before, after := partFields(c.Was), partFields(c.Is)
	var texts []string
	for i, f := range before {
		if !strings.EqualFold(f.value, after[i].value) {
			texts = append(texts, fmt.Sprintf("%s %s, Weir wants %s", f.name, orNone(f.value), orNone(after[i].value)))
		}
	}
	return text + strings.Join(texts, "; ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

type field struct{ name, value string }

func partFields(part any) []field {
	switch p := part.(type) {
	case Pool:
		return []field{{"drainPeriodInSeconds", fmt.Sprint(p.DrainPeriod())}}
	case Rule:
		reset := p.TCPReset != nil && *p.TCPReset
		return []field{
			{"protocol", string(p.Transport)}, {"frontendIPConfiguration", p.Frontend}, {"backendAddressPool", p.Pool}, {"probe", p.Probe},
			{"frontendPort", fmt.Sprint(p.FrontendPort)}, {"backendPort", fmt.Sprint(p.BackendPort)},
			{"enableFloatingIP", fmt.Sprint(p.FloatingIP)}, {"idleTimeoutInMinutes", fmt.Sprint(p.IdleMinutes)},
			{"enableTcpReset", fmt.Sprint(reset)}, {"loadDistribution", string(p.Distribution)},
			{"disableOutboundSnat", fmt.Sprint(p.DisableOutboundSNAT)}, {"enableConnectionTracking", fmt.Sprint(p.TracksConnections())},
		}
	case Probe:
		return []field{
			{"protocol", string(p.Protocol)}, {"port", fmt.Sprint(p.Port)}, {"requestPath", p.Path},
			{"intervalInSeconds", fmt.Sprint(p.IntervalSeconds)}, {"probeThreshold", fmt.Sprint(p.Threshold)},
			{"noHealthyBackendsBehavior", string(cmp.Or(p.NoHealthyBackends, AllProbedDown))},
		}
	case Frontend:
		address := ""
		if p.Static {
			address = p.PrivateIP.String()
		}
		return []field{
			{"publicIPAddress", lastSegment(p.PublicIP)}, {"subnet", lastSegment(p.Subnet)}, {"privateIPAddress", address}, {"zones", strings.Join(p.Zones, ",")},
			{"gatewayLoadBalancer", p.GatewayLoadBalancerID()},
		}
	case SecurityRule:
		return []field{
			{"priority", fmt.Sprint(p.Priority)}, {"access", string(p.Access)}, {"protocol", p.Protocol},
			{"sources", strings.Join(p.Sources, ",")}, {"destinations", strings.Join(p.Destinations, ",")},
			{"destinationPorts", strings.Join(p.DestinationPorts, ",")},
		}
	}
	return nil
}

// withoutAddresses returns a security rule without the addresses that other contains too; there may be thousands.
func withoutAddresses(r, other SecurityRule) SecurityRule {
	r.Sources, r.Destinations = onlyIn(r.Sources, other.Sources), onlyIn(r.Destinations, other.Destinations)
	return r
}

const maxNamed = 5

func onlyIn(list, other []string) []string {
	rest := slices.DeleteFunc(slices.Clone(list), func(text string) bool { return slices.Contains(other, text) })
	if more := len(rest) - maxNamed; more > 0 {
		rest = append(rest[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return rest
}

func lastSegment(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
