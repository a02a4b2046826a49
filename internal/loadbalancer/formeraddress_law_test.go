// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// formerWait covers tries that are rejected at first.
const formerWait = 3 * time.Minute

// formerStage has a Service web and others that share its former address.
type formerStage struct {
	*stage
}

// apply sets the spec of a Service and returns its rejection and status addresses.
func (s formerStage) apply(name string, fields map[string]string) (refused string, shown []netip.Addr) {
	s.mu.Lock()
	if c := s.process.claims[name]; c != nil {
		c.told = "" // from an earlier spec
	}
	s.mu.Unlock()
	s.stage.apply(name, specOf(fields), nil)
	s.settle(formerWait)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.claims[name].told, slices.Clone(s.services[name].status)
}

func (s formerStage) status(name string) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.services[name].status)
}

// formerWishes are specs of web: with a requested address that others share, and without.
var formerWishes = map[string]struct{ asks, shares, plain map[string]string }{
	"internal": {
		map[string]string{"azure-load-balancer-internal": "true", "azure-load-balancer-ipv4": "10.0.0.50"},
		map[string]string{"azure-load-balancer-internal": "true", "azure-load-balancer-ipv4": "10.0.0.50"},
		map[string]string{"azure-load-balancer-internal": "true"},
	},
	"public": {
		map[string]string{},
		map[string]string{"azure-pip-name": "kubernetes-a002"},
		map[string]string{},
	},
}

// formerAways are ways for web to give up its address while others retain it.
var formerAways = map[string]map[string]string{
	"of the other kind": {"families": "IPv4"},
	"of IPv6 alone":     {"families": "IPv6"},
}

func formerFields(of map[string]string, families, ports string) map[string]string {
	fields := maps.Clone(of)
	fields["families"], fields["ports"] = families, ports
	return fields
}

// formerAway returns the spec of web while it is away from an address.
func formerAway(kind, how string) map[string]string {
	all := maps.Clone(formerAways[how])
	all["ports"] = "80"
	if (kind == "internal") == (how == "of IPv6 alone") {
		all["azure-load-balancer-internal"] = "true"
	}
	return all
}

// A Service that requests no address gets its former one back if its ports are free there, otherwise a new one
// that it retains. One that requests the address is rejected.
func TestAFormerAddressWhosePortIsTaken(t *testing.T) {
	for kind, wish := range formerWishes {
		for how := range formerAways {
			for _, families := range []string{"IPv4", "IPv4 IPv6"} {
				for _, taken := range []bool{true, false} {
					about := fmt.Sprintf("%s, was %s, is of %s, taken %t", kind, how, families, taken)
					synctest.Test(t, func(*testing.T) {
						s := formerStage{newStage()}
						defer func() { s.close() }()
						s.apply("shop/base", map[string]string{"ports": "9000"})
						_, first := s.apply("shop/web", formerFields(wish.asks, families, "80"))
						refused, beside := s.apply("shop/beside", formerFields(wish.shares, "IPv4", "81"))
						if len(beside) != 1 || beside[0] != first[0] || refused != "" {
							t.Fatalf("%s: web has %v, and beside %v: %s", about, first, beside, refused)
						}
						s.apply("shop/web", formerAway(kind, how))
						if taken {
							if refused, _ := s.apply("shop/taker", formerFields(wish.shares, "IPv4", "80")); refused != "" {
								t.Fatalf("%s: the port is not free: %s", about, refused)
							}
						}
						refused, got := s.apply("shop/web", formerFields(wish.plain, families, "80"))
						if refused != "" || len(got) != len(strings.Fields(families)) || (got[0] == first[0]) == taken {
							t.Errorf("%s: had %v, has %v: %s\n%s", about, first, got, refused, s.harvest(false))
						}
						if !taken {
							return
						}
						s.remove("shop/taker")
						s.settle(time.Hour)
						s.restart()
						s.settle(time.Hour)
						if _, second := s.apply("shop/web", formerFields(wish.plain, families, "80 82")); !slices.Equal(got, second) {
							t.Errorf("%s: it had %v, and has %v when the port is free and after a restart\n%s", about, got, second, s.harvest(false))
						}
						if current := s.status("shop/beside"); !slices.Equal(current, beside) {
							t.Errorf("%s: beside has %v, had %v", about, current, beside)
						}
						if kind == "internal" {
							s.apply("shop/taker", formerFields(wish.shares, "IPv4", "80"))
							if refused, _ := s.apply("shop/web", formerFields(wish.asks, families, "80")); !strings.Contains(refused, "the port is taken") {
								t.Errorf("%s: it asks for the address: %q", about, refused)
							}
						}
						if err := s.check(); err != nil {
							t.Errorf("%s: %v", about, err)
						}
					})
				}
			}
		}
	}
}

// A Service that requests no address is never rejected for a port that was free when it was created, and the
// address of a retained family stays.
func TestLawNoAddressAskedFor(t *testing.T) {
	steps := []string{"web IPv4", "web IPv6", "web IPv4 IPv6", "web asks", "web away", "other kind", "beside", "taker", "no beside", "no taker", "restart"}
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom(slices.Sorted(maps.Keys(formerWishes))).Draw(rt, "kind")
		drawn := rapid.SliceOfN(rapid.SampledFrom(steps), 4, 10).Draw(rt, "steps")
		if err := noAddressAskedFor(t, kind, drawn); err != nil {
			rt.Fatal(err)
		}
	})
}

func noAddressAskedFor(t *testing.T, kind string, steps []string) (err error) {
	wish := formerWishes[kind]
	synctest.Test(t, func(*testing.T) {
		s := formerStage{newStage()}
		defer func() { s.close() }()
		s.apply("shop/base", map[string]string{"ports": "9000"})
		s.apply("shop/web", formerFields(wish.asks, "IPv4", "80"))
		s.apply("shop/inner", map[string]string{"ports": "9000", "azure-load-balancer-internal": "true"})
		present, plain := map[string]netip.Addr{}, false
		for i, step := range steps {
			name, subject, _ := strings.Cut(step, " ")
			switch {
			case name == "restart":
				s.restart()
				s.settle(formerWait)
			case step == "web asks":
				s.apply("shop/web", formerFields(wish.asks, "IPv4", "80"))
				plain = false
			case step == "web away":
				s.apply("shop/web", formerAway(kind, "of the other kind"))
				plain = false
			case step == "other kind":
				s.apply("shop/web", formerAway(kind, "of IPv6 alone"))
				plain = false
			case name == "web":
				refused, shown := s.apply("shop/web", formerFields(wish.plain, subject, "80"))
				if refused != "" {
					err = fmt.Errorf("%s, %v: refused at %d: %s\n%s", kind, steps, i, refused, s.harvest(false))
					return
				}
				current := map[string]netip.Addr{}
				for n, family := range strings.Fields(subject) {
					current[family] = shown[n]
				}
				for family, addr := range current {
					if before, ok := present[family]; plain && ok && before != addr {
						err = fmt.Errorf("%s, %v: at %d %s was %s and is %s\n%s", kind, steps, i, family, before, addr, s.harvest(false))
						return
					}
				}
				present, plain = current, true
			case name == "no":
				s.remove("shop/" + subject)
				s.settle(formerWait)
			case name == "beside":
				s.apply("shop/beside", formerFields(wish.shares, "IPv4", "81"))
			case name == "taker":
				s.apply("shop/taker", formerFields(wish.shares, "IPv4", "80"))
			}
		}
		s.remove("shop/taker")
		s.remove("shop/beside")
		if !s.settle(time.Hour) || s.check() != nil {
			err = fmt.Errorf("%s, %v: it does not come to rest: %w\n%s", kind, steps, s.check(), s.harvest(false))
		}
	})
	return err
}
