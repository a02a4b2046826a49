// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A list of Azure's maximum length is accepted. A longer one is rejected with field, length and limit.
func TestListsAreBounded(t *testing.T) {
	ranges := func(n int) []string {
		return strings.Split(joinTexts(n, func(i int) string { return hostName(2*i) + "/32" }), ",")
	}
	tests := []struct {
		field string
		most  int
		of    func(n int) Service
		want  string
	}{
		{"spec.loadBalancerSourceRanges", 4000, func(n int) Service { return newService(func(s *Service) { s.SourceRanges = ranges(n) }) }, "4001 ranges"},
		{SourceRanges, 4000, func(n int) Service { return newService(withAnnotation(SourceRanges, strings.Join(ranges(n), ","))) }, "4001 ranges"},
		{AllowedIPRanges, 4000, func(n int) Service { return newService(withAnnotation(AllowedIPRanges, strings.Join(ranges(n), " "))) }, "4001 ranges"},
		{AllowedServiceTags, 1000, func(n int) Service {
			return newService(withAnnotation(AllowedServiceTags, joinTexts(n, func(i int) string { return "T" + strconv.Itoa(i) })))
		}, "1001 service tags"},
		{AllowedServiceTags, 250, func(n int) Service {
			s := newService(asDualStack, withAnnotation(AllowedServiceTags, joinTexts(n, func(i int) string { return "T" + strconv.Itoa(i) })))
			s.Ports = append(s.Ports, Port{Protocol: "UDP", Port: 53, NodePort: 30053})
			return s
		}, "1004 security rules"},
		{AdditionalIPs, 4000, func(n int) Service { return newService(withAnnotation(AdditionalIPs, joinTexts(n, hostName))) }, "4001 addresses"},
		{Configurations, 1000, func(n int) Service {
			return newService(withAnnotation(Configurations, joinTexts(n, func(i int) string { return "lb-" + strconv.Itoa(i) })))
		}, "1001 names"},
		{PIPIPTags, 50, func(n int) Service {
			return newService(withAnnotation(PIPIPTags, joinTexts(n, func(i int) string { return "t" + strconv.Itoa(i) + "=x" })))
		}, "51 IP tags"},
		{PIPTags, 48, func(n int) Service { // plus two of Weir
			return newService(withAnnotation(PIPTags, joinTexts(n, func(i int) string { return "t" + strconv.Itoa(i) + "=x" })))
		}, "t0=x"},
		{"spec.ports", 1500, func(n int) Service { return newService(withPorts(manyPorts(1 << 20)[:n]...)) }, "1501 rules"},
		{"spec.ports", 750, func(n int) Service { return newService(asDualStack, withPorts(manyPorts(1 << 20)[:n]...)) }, "1501 rules"},
	}
	for _, tt := range tests {
		t.Run(tt.field, func(t *testing.T) {
			buildValidSpec(t, tt.of(tt.most), testSettings())
			w, problems := BuildSpec(tt.of(tt.most+1), testSettings())
			for _, f := range w.Flaws {
				problems = append(problems, f.Problem)
			}
			if len(problems) != 1 || problems[0].Field != tt.field || !strings.HasPrefix(problems[0].Value, tt.want) {
				t.Errorf("problems: %v", problems)
			}
		})
	}
}

// Duplicates and contained values count once.
func TestDuplicateEntriesCountOnce(t *testing.T) {
	twice := joinTexts(9000, func(i int) string { return hostName(i%4000*2) + "/32" })
	w := buildValidSpec(t, newService(withAnnotation(AllowedIPRanges, twice)), testSettings())
	if n := len(w.Access.Ranges); n != 4000 {
		t.Errorf("%d ranges", n)
	}
	within := joinTexts(9000, func(i int) string { return hostName(i) + "/32" }) + ",20.0.0.0/8"
	if w := buildValidSpec(t, newService(withAnnotation(AllowedIPRanges, within)), testSettings()); len(w.Access.Ranges) != 1 {
		t.Errorf("ranges: %v", w.Access.Ranges)
	}
	w = buildValidSpec(t, newService(withAnnotation(AllowedServiceTags, joinTexts(3000, func(i int) string { return []string{"Storage", "STORAGE", "Sql"}[i%3] }))), testSettings())
	if !slices.Equal(w.Access.Tags, []string{"Storage", "Sql"}) {
		t.Errorf("tags: %v", w.Access.Tags)
	}
}

// Only the first problems are reported.
func TestReportedProblemsAreLimited(t *testing.T) {
	w, _ := BuildSpec(newService(withAnnotation(AllowedIPRanges, joinTexts(500, strconv.Itoa))), testSettings())
	if len(w.Flaws) != maxProblems || w.Flaws[0].Value != "0" {
		t.Errorf("%d flaws, the first %v", len(w.Flaws), w.Flaws[0])
	}
}

// Property: collapse admits the same addresses, without overlaps and sorted.
func TestLawCollapse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var prefixes []netip.Prefix
		for range rapid.IntRange(0, 12).Draw(t, "ranges") {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 15).Draw(t, "address"))})
			bits := rapid.IntRange(28, 32).Draw(t, "bits")
			if rapid.Bool().Draw(t, "IPv6") {
				a = netip.AddrFrom16([16]byte{0x20, 1, 15: a.As4()[3]})
				bits += 96
			}
			prefixes = append(prefixes, netip.PrefixFrom(a, bits).Masked())
		}
		kept := removeContained(slices.Clone(prefixes))
		for _, p := range prefixes {
			if n := len(slices.DeleteFunc(slices.Clone(kept), func(k netip.Prefix) bool { return !k.Overlaps(p) || k.Bits() > p.Bits() })); n != 1 {
				t.Fatalf("%v is within %d of %v", p, n, kept)
			}
		}
		for i, k := range kept {
			if !slices.Contains(prefixes, k) || i > 0 && kept[i-1].Addr().Compare(k.Addr()) >= 0 {
				t.Fatalf("%v makes %v", prefixes, kept)
			}
		}
	})
}
