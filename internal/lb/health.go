// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"strings"
)

// MemberHealth is what the probe of a rule reports of a member.
type MemberHealth struct {
	IP netip.Addr `json:"ip"`
	Up bool       `json:"up"`
	// Reason is Azure's, e.g. Down_Probe_HttpStatusCodeError; may be empty.
	Reason string `json:"reason"`
}

var healthTexts = map[string]string{
	"Up_Probe_Success":                   "up",
	"Up_Probe_AllDownIsUp":               "up, because every member is down",
	"Up_Admin":                           "up by its admin state",
	"Down_Admin":                         "down by its admin state",
	"Down_Probe_HttpStatusCodeError":     "down: the probe gets another status than 200, as where no endpoint of the Service is ready",
	"Down_Probe_TcpProbeTimeout":         "down: no TCP connection to the probe's port",
	"Down_Probe_HttpEndpointUnreachable": "down: the probe's port is unreachable, as behind a security rule",
	"Down_Probe_HttpNoResponse":          "down: the probe gets no response",
	"Down_Platform":                      "down: Azure reports a failure of the platform",
	"NA":                                 "not known",
}

// Text returns the state and its reason for users.
func (h MemberHealth) Text() string {
	if text := healthTexts[h.Reason]; text != "" {
		return text + " (" + h.Reason + ")"
	}
	state := "down"
	if h.Up {
		state = "up"
	}
	return strings.TrimSuffix(state+" ("+h.Reason+")", " ()")
}

// ProbedRules returns one rule for each probe of a pool: rules with the same probe have the same health.
func (b LoadBalancer) ProbedRules(pool string) (rules []Rule) {
	for _, r := range b.Rules {
		if r.Probe == "" || !strings.EqualFold(r.Pool, pool) {
			continue
		}
		if !slices.ContainsFunc(rules, func(o Rule) bool { return strings.EqualFold(o.Probe, r.Probe) }) {
			rules = append(rules, r)
		}
	}
	return rules
}
