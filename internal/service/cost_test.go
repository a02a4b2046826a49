// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Kubernetes limits: 1.5 MiB per object, 256 KiB of annotations.
const (
	largestObject      = 3 << 19
	largestAnnotations = 1 << 18
)

// listOf returns formatted texts up to a total size.
func listOf(size int, form func(i int) string) []string {
	var names []string
	for i, used := 0, 0; ; i++ {
		text := form(i)
		if used += len(text) + 1; used > size {
			return names
		}
		names = append(names, text)
	}
}

func hostName(i int) string {
	return netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)}).String()
}

func largestServices() map[string]Service {
	text := func(services []string) string { return strings.Join(services, ",") }
	annotated := func(name string, form func(i int) string) Service {
		return newService(withAnnotation(name, text(listOf(largestAnnotations-len(name), form))))
	}
	annotatedPorts := func(about, value string) Service {
		s := newService(withPorts(manyPorts(largestObject - largestAnnotations)...))
		for i, used := 0, 0; used < largestAnnotations && i < len(s.Ports); i++ {
			name := ofPort(s.Ports[len(s.Ports)-1-i].Port, about)
			used += len(name) + len(value)
			s.Annotations[name] = value
		}
		return s
	}
	return map[string]Service{
		"source ranges": newService(func(s *Service) {
			s.SourceRanges = listOf(largestObject-largestObject/10, func(i int) string { return hostName(2*i) + "/32   " })
		}),
		"ranges of an annotation": annotated(AllowedIPRanges, func(i int) string { return hostName(2*i) + "/32" }),
		"what is no range":        annotated(AllowedIPRanges, strconv.Itoa),
		"service tags":            annotated(AllowedServiceTags, func(i int) string { return "T" + strconv.Itoa(i) }),
		"what is no tag":          annotated(AllowedServiceTags, strconv.Itoa),
		"additional addresses":    annotated(AdditionalIPs, hostName),
		"configurations":          annotated(Configurations, func(i int) string { return "lb-" + strconv.Itoa(i) }),
		"tags of a public IP":     annotated(PIPTags, func(i int) string { return strconv.Itoa(i) + "=x" }),
		"IP tags":                 annotated(PIPIPTags, func(i int) string { return strconv.Itoa(i) + "=x" }),
		"ports":                   newService(withPorts(manyPorts(largestObject)...)),
		"ports without rules":     annotatedPorts(portNoRule, "true"),
		"ports with probes":       annotatedPorts(portProbePort, "last"),
	}
}

// manyPorts returns as many ports as fit a size in JSON.
func manyPorts(size int) []Port {
	var ports []Port
	for i := 1; i < 65536 && size > 0; i++ {
		p := Port{Name: "p" + strconv.Itoa(i), Protocol: "TCP", Port: int32(i), NodePort: int32(30000 + i%2768)}
		ports, size = append(ports, p), size-len(`{"name":"p","protocol":"TCP","port":,"targetPort":,"nodePort":30000},`)-3*len(strconv.Itoa(i))
	}
	return ports
}

// clearly is far more than linear time and far less than quadratic time on any machine.
const clearly = 3 * time.Minute

// requireFinished panics if do does not return in time.
func requireFinished(about string, do func()) {
	defer time.AfterFunc(clearly, func() { panic(fmt.Sprintf("%s: no end within %s", about, clearly)) }).Stop()
	do()
}

func BenchmarkLargest(b *testing.B) {
	services := largestServices()
	names := make([]string, 0, len(services))
	for name := range services {
		names = append(names, name)
	}
	slices.Sort(names)
	addresses, nodes := []netip.Addr{netip.MustParseAddr("20.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.4")}
	for _, name := range names {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				w, problems := BuildSpec(services[name], testSettings())
				if len(problems) == 0 {
					w.AccessRules(addresses, nodes)
				}
			}
		})
	}
}

// The largest Services are parsed in linear time.
func TestTheLargestServicesAreRead(t *testing.T) {
	for name, s := range largestServices() {
		requireFinished(name, func() {
			for range 3 {
				w, problems := BuildSpec(s, testSettings())
				w.AccessRules([]netip.Addr{netip.MustParseAddr("20.0.0.1")}, nil)
				if len(problems) > maxProblems {
					t.Errorf("%s: %d problems are told", name, len(problems))
				}
			}
		})
	}
}

// Twice the length needs about twice the allocations.
func TestReadingGrowsWithTheLength(t *testing.T) {
	for _, tt := range []struct {
		about string
		of    func(n int) Service
	}{
		{"ranges", func(n int) Service {
			return newService(withAnnotation(AllowedIPRanges, joinTexts(n, func(i int) string { return hostName(2*i) + "/32" })))
		}},
		{"service tags", func(n int) Service {
			return newService(withAnnotation(AllowedServiceTags, joinTexts(n, func(i int) string { return "T" + strconv.Itoa(i) })))
		}},
		{"addresses", func(n int) Service { return newService(withAnnotation(AdditionalIPs, joinTexts(n, hostName))) }},
		{"ports", func(n int) Service { return newService(withPorts(manyPorts(1 << 20)[:n]...)) }},
	} {
		cost := func(n int) float64 {
			s := tt.of(n)
			return testing.AllocsPerRun(1, func() {
				w, problems := BuildSpec(s, testSettings())
				if len(problems) > 0 {
					t.Fatalf("%s: %v", tt.about, problems)
				}
				w.AccessRules([]netip.Addr{netip.MustParseAddr("20.0.0.1")}, nil)
			})
		}
		if once, twice := cost(500), cost(1000); twice > 2.5*once {
			t.Errorf("%s: 500 take %.0f allocations, 1000 take %.0f", tt.about, once, twice)
		}
	}
}

func joinTexts(n int, form func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = form(i)
	}
	return strings.Join(texts, ",")
}
