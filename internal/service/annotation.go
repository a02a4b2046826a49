// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

const prefix = "service.beta.kubernetes.io/"

// The supported annotations.
const (
	Internal          = prefix + "azure-load-balancer-internal"
	InternalSubnet    = prefix + "azure-load-balancer-internal-subnet"
	IPv4              = prefix + "azure-load-balancer-ipv4"
	IPv6              = prefix + "azure-load-balancer-ipv6"
	PIPName           = prefix + "azure-pip-name"
	PIPNameIPv6       = prefix + "azure-pip-name-ipv6"
	PIPPrefixID       = prefix + "azure-pip-prefix-id"
	PIPPrefixIDIPv6   = prefix + "azure-pip-prefix-id-ipv6"
	PIPResourceGroup  = prefix + "azure-load-balancer-resource-group"
	PIPTags           = prefix + "azure-pip-tags"
	PIPIPTags         = prefix + "azure-pip-ip-tags"
	DNSLabel          = prefix + "azure-dns-label-name"
	AdditionalIPs     = prefix + "azure-additional-public-ips"
	ProbeProtocol     = prefix + "azure-load-balancer-health-probe-protocol"
	ProbeInterval     = prefix + "azure-load-balancer-health-probe-interval"
	ProbeThreshold    = prefix + "azure-load-balancer-health-probe-num-of-probe"
	ProbePath         = prefix + "azure-load-balancer-health-probe-request-path"
	DisableFloatingIP = prefix + "azure-disable-load-balancer-floating-ip"
	HAPorts           = prefix + "azure-load-balancer-enable-high-availability-ports"
	IdleTimeout       = prefix + "azure-load-balancer-tcp-idle-timeout"
	DisableTCPReset   = prefix + "azure-load-balancer-disable-tcp-reset"
	Configurations    = prefix + "azure-load-balancer-configurations"

	SourceRanges         = prefix + "load-balancer-source-ranges"
	AllowedIPRanges      = prefix + "azure-allowed-ip-ranges"
	AllowedServiceTags   = prefix + "azure-allowed-service-tags"
	DenyAllExcept        = prefix + "azure-deny-all-except-load-balancer-source-ranges"
	DisableSecurityRules = prefix + "azure-disable-load-balancer-nsg-rule"
)

// Zones is the Weir annotation that names the availability zones of the Service's new public IPs or private frontends.
const Zones = "weir.dev/zones"

// AllowRemoval is the Weir annotation by which the user allows removing the Service's addresses.
const AllowRemoval = "weir.dev/allow-removal"

// RetainAddress is the Weir annotation that keeps the Service's public IPs in Azure when it leaves them.
const RetainAddress = "weir.dev/retain-address"

// RetainsAddress reports whether the Service's public IPs stay when it leaves them. An invalid value keeps them, because a
// deleted address cannot be restored.
func (s Service) RetainsAddress(set Settings) bool {
	value := strings.TrimSpace(s.Annotations[RetainAddress])
	return value == "" && set.RetainAddresses || value != "" && !strings.EqualFold(value, "false")
}

// ofPort returns a per-port annotation such as port_80_no_lb_rule.
func ofPort(port int32, property string) string {
	return fmt.Sprintf("%sport_%d_%s", prefix, port, property)
}

// The per-port annotations.
const (
	portNoRule         = "no_lb_rule"
	portNoProbe        = "no_probe_rule"
	portProbeProtocol  = "health-probe_protocol"
	portProbePort      = "health-probe_port"
	portProbeInterval  = "health-probe_interval"
	portProbeThreshold = "health-probe_num-of-probe"
	portProbePath      = "health-probe_request-path"
)

// Problem is an error that blocks a Service.
type Problem struct {
	// Field is the annotation or the field of the Service.
	Field string
	// Value is the current value, followed by a description of the allowed ones.
	Value, Expected string
}

// Error returns field, quoted value and allowed values.
func (p Problem) Error() string {
	return fmt.Sprintf("%s is %q: want %s", p.Field, truncateValue(p.Value), p.Expected)
}

// truncateValue truncates a value for an event; annotations can have 256 KiB.
func truncateValue(value string) string {
	if runes := []rune(value); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return value
}

// reader parses the annotations of a Service and collects problems.
type reader struct {
	annotations map[string]string
	problems    []Problem
	flaws
	probes map[lb.Probe]bool
}

func (r *reader) addProblem(field, value, want string) {
	p := Problem{Field: field, Value: value, Expected: want}
	if len(r.problems) < maxProblems && !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

func (r *reader) readText(name string) (string, bool) {
	value := strings.TrimSpace(r.annotations[name])
	return value, value != ""
}

// readBool parses "true" or "false", case-insensitively like cloud-provider-azure.
func (r *reader) readBool(name string) bool {
	value, ok := r.readText(name)
	switch {
	case !ok, strings.EqualFold(value, "false"):
		return false
	case strings.EqualFold(value, "true"):
		return true
	}
	r.addProblem(name, value, `"true" or "false"`)
	return false
}

// readNumber parses an integer within bounds; unit is for messages.
func (r *reader) readNumber(name, unit string, minimum, maximum, fallback int32) int32 {
	value, ok := r.readText(name)
	if !ok {
		return fallback
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < int64(minimum) || n > int64(maximum) {
		r.addProblem(name, value, fmt.Sprintf("a whole number%s from %d to %d", unit, minimum, maximum))
		return fallback
	}
	return int32(n)
}

// firstSet returns the first annotation that is set, or the last.
func (r *reader) firstSet(names ...string) string {
	for _, name := range names {
		if _, ok := r.readText(name); ok {
			return name
		}
	}
	return names[len(names)-1]
}

func (r *reader) parseAddress(name, value string, family lb.Family) netip.Addr {
	ip, err := netip.ParseAddr(value)
	if err != nil || !family.Contains(ip) || ip.Zone() != "" {
		r.addProblem(name, value, "an "+string(family)+" address")
		return netip.Addr{}
	}
	return ip
}

// parsePairs parses "a=b,c=d".
func (r *reader) parsePairs(name string, check func(key, value string) string) map[string]string {
	text, ok := r.readText(name)
	if !ok {
		return nil
	}
	pairs := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, found := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !found || key == "" {
			r.addProblem(name, text, `pairs like "a=b,c=d"`)
			return nil
		}
		if want := check(key, value); want != "" {
			r.addProblem(name, text, want)
			return nil
		}
		pairs[key] = value
	}
	return pairs
}

func tagProblem(key, value string) string {
	if !lb.ValidTag(key, value) {
		return lb.TagRule
	}
	return ""
}

var dnsRule = regexp.MustCompile(`^[a-z][a-z0-9-]{1,61}[a-z0-9]$`)

// knownAnnotations are the supported annotations, without those of ports.
var knownAnnotations = []string{
	Internal, InternalSubnet, IPv4, IPv6, PIPName, PIPNameIPv6, PIPPrefixID, PIPPrefixIDIPv6, PIPResourceGroup,
	PIPTags, PIPIPTags, DNSLabel, AdditionalIPs, ProbeProtocol, ProbeInterval, ProbeThreshold, ProbePath,
	DisableFloatingIP, HAPorts, IdleTimeout, DisableTCPReset, Configurations,
	SourceRanges, AllowedIPRanges, AllowedServiceTags, DenyAllExcept, DisableSecurityRules,
	PLSCreate, PLSName, PLSResourceGroup, PLSSubnet, PLSCount, PLSAddresses, PLSFQDNs, PLSProxyProtocol, PLSVisibility, PLSAutoApproval,
}

var (
	knownPortAnnotations = []string{portNoRule, portNoProbe, portProbeProtocol, portProbePort, portProbeInterval, portProbeThreshold, portProbePath}
	ofPortRule           = regexp.MustCompile(`^port_[1-9][0-9]{0,4}_(.+)$`)
)

// UnknownAnnotations returns the sorted Azure load balancer annotations without effect, because they are misspelled or
// unsupported.
func (s Service) UnknownAnnotations() []string {
	var annotations []string
	for name := range s.Annotations {
		bare, ours := strings.CutPrefix(name, prefix)
		if !ours || slices.Contains(knownAnnotations, name) {
			continue
		}
		if m := ofPortRule.FindStringSubmatch(bare); m != nil && slices.Contains(knownPortAnnotations, m[1]) {
			continue
		}
		if strings.HasPrefix(bare, "azure-") || strings.HasPrefix(bare, "port_") {
			annotations = append(annotations, name)
		}
	}
	slices.Sort(annotations)
	return annotations
}
