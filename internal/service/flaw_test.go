// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// The valid parts of a restriction with an error apply, and all else is denied.
func TestARestrictionWithAnErrorDenies(t *testing.T) {
	const nobody, some = "", "Allow IPv4 Tcp from 192.0.2.0/24 to [20.0.0.1] at 80"
	const denied = "\nDeny IPv4 * from * to [20.0.0.1] at *"
	alone := withAnnotation(DenyAllExcept, "true")
	for _, tt := range []struct {
		about   string
		service Service
		want    string
		flaws   []string
	}{
		{"host bits", newService(withAnnotation(AllowedIPRanges, "192.0.2.0/24,198.51.100.7/24")), some, []string{AllowedIPRanges + ` is "198.51.100.7/24": want the range as 198.51.100.0/24, or the one address as 198.51.100.7/32. It admits no client`}},
		{"host bits alone", newService(withAnnotation(AllowedIPRanges, "10.0.0.1/8")), nobody, []string{"the range as 10.0.0.0/8, or the one address as 10.0.0.1/32"}},
		{"an address", newService(withAnnotation(SourceRanges, "192.0.2.0/24 198.51.100.7")), some, []string{"want CIDRs"}},
		{"too many bits", newService(withAnnotation(SourceRanges, "10.0.0.0/33")), nobody, []string{"want CIDRs"}},
		{"spec.loadBalancerSourceRanges", newService(withRanges("192.0.2.0/24", "10.0.0.0")), some, []string{`spec.loadBalancerSourceRanges is "10.0.0.0": want CIDRs`}},
		{"an empty range of the spec", newService(withRanges("")), nobody, []string{`is "": want CIDRs`}},
		{"words", newService(withAnnotation(AllowedIPRanges, "192.0.2.0/24 everybody")), some, []string{`"everybody": want CIDRs`}},
		{"IPv4 in IPv6", newService(withAnnotation(AllowedIPRanges, "::ffff:10.0.0.0/104")), nobody, []string{"the IPv4 range itself"}},
		{"the other family", newService(withAnnotation(AllowedIPRanges, "2001:db8::/32")), nobody, nil},
		{"IPv6 with host bits", newService(asDualStack, withAnnotation(AllowedIPRanges, "2001:db8::1/32,192.0.2.0/24")), some, []string{"the range as 2001:db8::/32"}},
		{"twice, with empty ones", newService(withAnnotation(AllowedIPRanges, "192.0.2.0/24,,192.0.2.0/24, ")), some, nil},
		{"separators alone", newService(withAnnotation(AllowedIPRanges, " , ")), nobody, []string{AllowedIPRanges + ` is ",": want CIDRs`}},
		{"separators alone in the annotation of Kubernetes", newService(withAnnotation(SourceRanges, ",")), nobody, []string{SourceRanges + ` is ",": want CIDRs`}},
		{"separators alone as service tags", newService(withAnnotation(AllowedServiceTags, ",,")), nobody, []string{"service tags such as"}},
		{"a range among service tags", newService(withAnnotation(AllowedServiceTags, "AzureCloud,10.0.0.0/8")), "Allow IPv4 Tcp from AzureCloud to [20.0.0.1] at 80", []string{"address ranges are for " + AllowedIPRanges}},
		{"service tags alone", newService(withAnnotation(AllowedServiceTags, "Azure Cloud")), nobody, []string{"service tags such as"}},
		{"a range beside a wrong service tag", newService(withAnnotation(AllowedServiceTags, "*"), withAnnotation(AllowedIPRanges, "192.0.2.0/24")), some, []string{"service tags such as"}},
		{"nobody else", newService(alone, withAnnotation(AllowedIPRanges, "192.0.2.0/24,x")), some + denied, []string{"want CIDRs"}},
		{"nobody at all", newService(alone, withAnnotation(AllowedIPRanges, "x")), strings.TrimSpace(denied), []string{"want CIDRs"}},
		{"internal", newService(asInternal, withAnnotation(AllowedIPRanges, "x")), nobody, []string{"want CIDRs"}},
		{"whether others are denied is unclear", newService(withAnnotation(DenyAllExcept, "all"), withAnnotation(AllowedIPRanges, "192.0.2.0/24")), some + denied, []string{DenyAllExcept + ` is "all": want "true" or "false". It counts as "true"`}},
		{"whether there are rules is unclear", newService(withAnnotation(DisableSecurityRules, "1")), nobody, []string{DisableSecurityRules + ` is "1"`}},
		{"whether there are rules is unclear, with a range", newService(withAnnotation(DisableSecurityRules, "1"), withAnnotation(AllowedIPRanges, "192.0.2.0/24")), some, []string{`It counts as "false"`}},
	} {
		w := buildValidSpec(t, tt.service, testSettings())
		if got := formatAccessRules(w.AccessRules([]netip.Addr{front4, front6}[:len(w.Frontends)], []netip.Addr{node4})); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.about, got, tt.want)
		}
		if len(w.Flaws) != len(tt.flaws) || len(w.Flaws) > 0 && !strings.Contains(w.Flaws[0].Error(), tt.flaws[0]) {
			t.Errorf("%s: flaws %v, want %q", tt.about, w.Flaws, tt.flaws)
		}
	}
}

// A port that Azure cannot serve does not affect others. An SCTP port needs an all-ports rule of an internal
// frontend and is probed on a TCP port.
func TestAPortThatAzureCannotServe(t *testing.T) {
	tcp, sctp := Port{Protocol: "TCP", Port: 80, NodePort: 30080}, Port{Protocol: "SCTP", Port: 30102, NodePort: 30103}
	same := Port{Protocol: "SCTP", Port: 80, NodePort: 30081}
	bare := Port{Protocol: "TCP", Port: 81}
	for _, tt := range []struct {
		about   string
		service Service
		want    string
	}{
		{"public", newService(withPorts(sctp, tcp)), "Tcp 80 probe 30080; 30102/SCTP UnsupportedProtocol"},
		{"of the same number", newService(withPorts(tcp, same)), "Tcp 80 probe 30080; 80/SCTP UnsupportedProtocol"},
		{"internal", newService(asInternal, withPorts(sctp, tcp)), "All 0 probe 30080"},
		{"internal, SCTP alone", newService(asInternal, withPorts(sctp)), "All 0"},
		{"internal, Local", newService(asInternal, asLocal, withPorts(sctp)), "All 0 probe 31000"},
		{"internal, without a rule", newService(asInternal, withPorts(sctp, tcp), withAnnotation(ofPort(30102, portNoRule), "true")), "Tcp 80 probe 30080"},
		{"internal, dual stack", newService(asInternal, asDualStack, withPorts(tcp, sctp)), "All 0 probe 30080; All 0 probe 30080"},
		{"internal, for some clients", newService(asInternal, withPorts(sctp, tcp), withRanges("10.0.0.0/8")), "All 0 probe 30080"},
		{"internal, for some clients, at the nodes", newService(asInternal, withPorts(sctp, tcp), withRanges("10.0.0.0/8"), withAnnotation(DisableFloatingIP, "true")), "Tcp 80 probe 30080; 30102/SCTP UnsupportedProtocol"},
		{"internal, at the nodes", newService(asInternal, withPorts(sctp, tcp), withAnnotation(DisableFloatingIP, "true")), "Tcp 80 probe 30080; 30102/SCTP UnsupportedProtocol"},
		{"internal, with further addresses", newService(asInternal, withPorts(sctp, tcp), withAnnotation(AdditionalIPs, "20.0.0.9")), "Tcp 80 probe 30080; 30102/SCTP UnsupportedProtocol"},
		{"internal, at an address that others have", newService(asInternal, sharesAddress, withPorts(sctp, tcp)), "Tcp 80 probe 30080; 30102/SCTP UnsupportedProtocol"},
		{"internal, dual stack, at an address that others have", newService(asInternal, asDualStack, sharesAddress, withPorts(tcp, sctp)), "Tcp 80 probe 30080; Tcp 80 probe 30080; 30102/SCTP UnsupportedProtocol"},
		{"internal, for all ports, at an address that others have", newService(asInternal, sharesAddress, withPorts(sctp, tcp), withAnnotation(HAPorts, "true")), "All 0 probe 30080"},
		{"without a node port to probe", newService(withPorts(bare, tcp)), "Tcp 80 probe 30080; 81/ NoNodePort"},
		{"without a node port", newService(withPorts(bare, tcp), withAnnotation(DisableFloatingIP, "true")), "Tcp 80 probe 30080; 81/ NoNodePort"},
		{"probed at one without a node port", newService(withPorts(tcp, Port{Protocol: "UDP", Port: 81}), withAnnotation(ofPort(80, portProbePort), "81")), "Udp 81; 80/ NoNodePort"},
	} {
		w := buildValidSpec(t, tt.service, testSettings())
		var got []string
		for _, r := range w.Rules {
			text := fmt.Sprintf("%s %d", r.Transport, r.FrontendPort)
			if at := slices.IndexFunc(w.Probes, func(p lb.Probe) bool { return p.Name == r.Probe }); at >= 0 {
				text += fmt.Sprintf(" probe %d", w.Probes[at].Port)
			}
			got = append(got, text)
		}
		for _, f := range w.Flaws {
			port, reason := f.OfPort()
			got = append(got, fmt.Sprintf("%d/%s %s", port.Port, port.Protocol, reason))
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, text, tt.want)
		}
	}
	for about, s := range map[string]Service{"public": newService(withPorts(sctp)), "at an address that others have": newService(asInternal, sharesAddress, withPorts(sctp))} {
		if _, problems := BuildSpec(s, testSettings()); len(problems) != 1 {
			t.Errorf("SCTP alone, %s: %v", about, problems)
		}
	}
}

func sharesAddress(s *Service) { s.SharesAddress = true }

// The private addresses that a Service requests.
func TestPrivateAddresses(t *testing.T) {
	for about, tt := range map[string]struct {
		service   Service
		requested string
		internal  bool
	}{
		"public":         {newService(withAnnotation(IPv4, "10.0.0.50")), "[]", false},
		"any":            {newService(asInternal), "[]", true},
		"one":            {newService(asInternal, withAnnotation(IPv4, "10.0.0.50")), "[10.0.0.50]", true},
		"of a subnet":    {newService(asInternal, withAnnotation(IPv4, "10.0.0.50"), withAnnotation(InternalSubnet, "apps")), "[apps 10.0.0.50]", true},
		"of both":        {newService(asInternal, asDualStack, withAnnotation(IPv4, "10.0.0.50"), withAnnotation(IPv6, "fd00::9")), "[10.0.0.50 fd00::9]", true},
		"of the spec":    {newService(asInternal, func(s *Service) { s.LoadBalancerIP = "10.0.0.50" }), "[10.0.0.50]", true},
		"of no family":   {newService(asInternal, withAnnotation(IPv6, "fd00::9")), "[]", true},
		"not an address": {newService(asInternal, withAnnotation(IPv4, "ten")), "[]", true},
	} {
		if requests, internal := tt.service.PrivateAddresses(); fmt.Sprint(requests) != tt.requested || internal != tt.internal {
			t.Errorf("%s: %v, internal %t", about, requests, internal)
		}
	}
}

// Property: a Service with invalid restrictions admits what it would admit without the invalid parts; if none
// is left, nothing from the Internet. The invalid parts are reported.
func TestLawRestrictionsWithErrors(t *testing.T) {
	good := map[string][]string{
		AllowedIPRanges: {"192.0.2.0/24", "198.51.100.7/32", "2001:db8::/32"}, AllowedServiceTags: {"AzureCloud", "AzureFrontDoor.Backend"},
		SourceRanges: {"203.0.113.0/24"}, "": {"10.0.0.0/8", "2001:db8:1::/48"},
	}
	bad := []string{"198.51.100.7/24", "?", "10.0.0.0/33", "::ffff:10.0.0.0/104", "-", "1.2.3.4", "*"}
	rapid.Check(t, func(t *rapid.T) {
		right, wrong := newService(), newService()
		if rapid.Bool().Draw(t, "dual") {
			asDualStack(&right)
			asDualStack(&wrong)
		}
		if rapid.Bool().Draw(t, "internal") {
			asInternal(&right)
			asInternal(&wrong)
		}
		restricted, errors := false, false
		for _, field := range []string{AllowedIPRanges, AllowedServiceTags, SourceRanges, ""} {
			valid := rapid.SliceOfN(rapid.SampledFrom(good[field]), 0, 3).Draw(t, "valid"+field)
			invalid := rapid.SliceOfN(rapid.SampledFrom(bad), 0, 2).Draw(t, "invalid"+field)
			if field == SourceRanges && len(wrong.SourceRanges) > 0 {
				continue
			}
			restricted = restricted || len(valid)+len(invalid) > 0
			errors = errors || len(invalid) > 0
			restrictions := slices.Concat(invalid, valid)
			if field == "" {
				if len(restrictions) > 0 && wrong.Annotations[SourceRanges] != "" {
					delete(wrong.Annotations, SourceRanges)
					delete(right.Annotations, SourceRanges)
					errors = errors || len(invalid) > 0
				}
				right.SourceRanges, wrong.SourceRanges = valid, restrictions
				continue
			}
			right.Annotations[field], wrong.Annotations[field] = strings.Join(valid, ","), strings.Join(restrictions, ",")
		}
		w, problems := BuildSpec(wrong, testSettings())
		current, _ := BuildSpec(right, testSettings())
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		spell := func(w Spec) string {
			return formatAccessRules(w.AccessRules([]netip.Addr{front4, front6}[:len(w.Frontends)], nil))
		}
		got, want := spell(w), spell(current)
		if restricted && !current.Access.IsLimited() {
			want = ""
		}
		if restricted && got != want || restricted && strings.Contains(got, internet) {
			t.Fatalf("%v %v admits\n%s\nwant\n%s", wrong.Annotations, wrong.SourceRanges, got, want)
		}
		if len(w.Flaws) > 0 && !errors {
			t.Fatalf("flaws %v of %v", w.Flaws, wrong.Annotations)
		}
	})
}

// Two public IPs cannot have the same label: that of the first family gets it, and the user is informed.
func TestADNSLabelOfTwoFamilies(t *testing.T) {
	for about, families := range map[string][]lb.Family{"IPv4": {lb.IPv4, lb.IPv6}, "IPv6": {lb.IPv6, lb.IPv4}} {
		w := buildValidSpec(t, newService(func(s *Service) { s.Families = families }, withAnnotation(DNSLabel, "dual")), testSettings())
		first, second := w.Frontends[0].PublicIP, w.Frontends[1].PublicIP
		if first.DNSLabel != "dual" || first.Tags[TagDNSLabel] == "" || second.DNSLabel != "" || second.SetsDNSLabel || second.Tags[TagDNSLabel] != "" ||
			len(w.Flaws) != 1 || !strings.Contains(w.Flaws[0].Error(), "Its "+about+" address alone has the label") {
			t.Errorf("%s first: %+v, %+v, %v", about, first, second, w.Flaws)
		}
	}
}
