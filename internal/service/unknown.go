// SPDX-License-Identifier: Apache-2.0

package service

import (
	"regexp"
	"slices"
	"strings"
)

// known are the annotations that have an effect, but for those of ports.
var known = []string{
	Internal, InternalSubnet, IPv4, IPv6, PIPName, PIPNameIPv6, PIPPrefixID, PIPPrefixIDIPv6, PIPResourceGroup,
	PIPTags, PIPIPTags, DNSLabel, AdditionalIPs, ProbeProtocol, ProbeInterval, ProbeThreshold, ProbePath,
	DisableFloatingIP, HAPorts, IdleTimeout, DisableTCPReset, Configurations,
	SourceRanges, AllowedIPRanges, AllowedServiceTags, DenyAllExcept, DisableSecurityRules,
}

var (
	knownOfPorts = []string{portNoRule, portNoProbe, portProbeProtocol, portProbePort, portProbeInterval, portProbeThreshold, portProbePath}
	ofPortRule   = regexp.MustCompile(`^port_[1-9][0-9]{0,4}_(.+)$`)
)

// Unknown returns the annotations of a Service that speak of Azure load balancers and have no
// effect, because they are misspelt or not supported, in order. Those of other clouds are none
// of them.
func (s Service) Unknown() []string {
	var all []string
	for name := range s.Annotations {
		bare, ours := strings.CutPrefix(name, prefix)
		if !ours || slices.Contains(known, name) {
			continue
		}
		if m := ofPortRule.FindStringSubmatch(bare); m != nil && slices.Contains(knownOfPorts, m[1]) {
			continue
		}
		if strings.HasPrefix(bare, "azure-") || strings.HasPrefix(bare, "port_") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
