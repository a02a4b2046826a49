// SPDX-License-Identifier: Apache-2.0

package nic_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// pool returns the ID of a pool written as "balancer/pool".
func pool(name string) lb.PoolID {
	balancer, pool, _ := strings.Cut(name, "/")
	return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: balancer}, Name: pool}
}

func poolIDs(names string) []lb.PoolID {
	var pools []lb.PoolID
	for name := range strings.FieldsSeq(names) {
		pools = append(pools, pool(name))
	}
	return pools
}

func ids(names string) []string {
	var ids []string
	for _, id := range poolIDs(names) {
		ids = append(ids, id.String())
	}
	return ids
}

func names(pools []string) string {
	var names []string
	for _, id := range pools {
		parts := strings.Split(id, "/")
		names = append(names, parts[8]+"/"+parts[10])
	}
	return strings.Join(names, " ")
}

func TestNextOf(t *testing.T) {
	const held = "kubernetes/k8s kubernetes/k8s-IPv6 kubernetes-internal/k8s"
	for _, tt := range []struct {
		name                 string
		shown, want, becomes string
		changed              bool
	}{
		{"joins", "", "kubernetes/k8s", "kubernetes/k8s", true},
		{"is in it already", "kubernetes/k8s", "kubernetes/k8s", "kubernetes/k8s", false},
		{"is in it, with other capitals", "KUBERNETES/K8S", "kubernetes/k8s", "KUBERNETES/K8S", false},
		{"leaves", "kubernetes/k8s", "", "", true},
		{"leaves what was recorded", "gone/old", "", "", true},
		{"moves in one write, and foreign pools stay in their order", "other/b kubernetes/k8s other/a", "second/k8s", "other/b other/a second/k8s", true},
		{"a pool of outbound rules on the same load balancer stays", "kubernetes/outbound kubernetes/k8s", "", "kubernetes/outbound", true},
		{"the internal twin joins", "kubernetes/k8s", "kubernetes/k8s kubernetes-internal/k8s", "kubernetes/k8s kubernetes-internal/k8s", true},
		{"twice the same", "kubernetes/k8s other/a kubernetes/K8S", "kubernetes/k8s", "kubernetes/k8s other/a", true},
		{"a foreign one twice is not ours to mend", "other/a other/a", "", "other/a other/a", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			own := nic.NewManagedPools(poolIDs("gone/old"), poolIDs(held))
			shown := lb.InterfaceConfiguration{IPConfigurations: []lb.IPConfiguration{{Family: lb.IPv4, Pools: ids(tt.shown)}}}
			next := nic.NextConfiguration(shown, nic.Pools{lb.IPv4: poolIDs(tt.want)}, own)
			if got := names(next.IPConfigurations[0].Pools); got != tt.becomes || next.Changed != tt.changed {
				t.Errorf("got %q, changed %v; want %q, %v", got, next.Changed, tt.becomes, tt.changed)
			}
		})
	}
}

// The IP configuration that is written.
func TestTheAddressThatIsWritten(t *testing.T) {
	v4, v6 := lb.IPConfiguration{Family: lb.IPv4}, lb.IPConfiguration{Family: lb.IPv6}
	primary := v4
	primary.Primary = true
	for _, tt := range []struct {
		name    string
		ips     []lb.IPConfiguration
		v4, v6  int // written index; -1 for none
		lacking int
	}{
		{"the only one", []lb.IPConfiguration{v4}, 0, -1, 1},
		{"the primary one", []lb.IPConfiguration{v4, primary, v6}, 1, 2, 0},
		{"the first of the other family", []lb.IPConfiguration{primary, v6, v6}, 0, 1, 0},
		{"none", nil, -1, -1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := nic.Pools{lb.IPv4: poolIDs("kubernetes/k8s"), lb.IPv6: poolIDs("kubernetes/k8s-IPv6")}
			next := nic.NextConfiguration(lb.InterfaceConfiguration{IPConfigurations: tt.ips}, want, nil)
			for i, ip := range next.IPConfigurations {
				got := map[string]int{"": -9, "kubernetes/k8s": tt.v4, "kubernetes/k8s-IPv6": tt.v6}[names(ip.Pools)]
				if written := i == tt.v4 || i == tt.v6; written && got != i || !written && got != -9 {
					t.Errorf("IP configuration %d: %q", i, names(ip.Pools))
				}
			}
			if len(next.MissingFamilies) != tt.lacking {
				t.Errorf("lacks %v, want %d", next.MissingFamilies, tt.lacking)
			}
		})
	}
}

// drawPools draws pool IDs with varying case.
func drawPools(t *rapid.T, label string) []string {
	pools := rapid.SliceOfN(rapid.SampledFrom(ids("k/a k/b k/c i/a o/x o/y o/z")), 0, 6).Draw(t, label)
	for i := range pools {
		if rapid.IntRange(0, 3).Draw(t, "capitals") == 0 {
			pools[i] = strings.ToUpper(pools[i])
		}
	}
	return pools
}

func fold(id string) string { return strings.ToLower(id) }

// Properties of NextConfiguration for any interface and any desired pools.
func TestLawsOfAWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shown lb.InterfaceConfiguration
		for range rapid.IntRange(0, 4).Draw(t, "addresses") {
			shown.IPConfigurations = append(shown.IPConfigurations, lb.IPConfiguration{
				Family:  rapid.SampledFrom([]lb.Family{lb.IPv4, lb.IPv6}).Draw(t, "family"),
				Primary: rapid.Bool().Draw(t, "primary"), Pools: drawPools(t, "shown"),
			})
		}
		want := nic.Pools{lb.IPv4: rapid.SliceOf(rapid.SampledFrom(poolIDs("k/a k/b i/a"))).Draw(t, "v4"), lb.IPv6: rapid.SliceOf(rapid.SampledFrom(poolIDs("k/b k/c"))).Draw(t, "v6")}
		own := nic.NewManagedPools(poolIDs("k/c"), rapid.SliceOf(rapid.SampledFrom(poolIDs("k/a k/b i/a"))).Draw(t, "held"))
		var before [][]string
		for _, ip := range shown.IPConfigurations {
			before = append(before, slices.Clone(ip.Pools))
		}

		next := nic.NextConfiguration(shown, want, own)
		second := nic.NextConfiguration(next.InterfaceConfiguration, want, own)
		if second.Changed {
			t.Fatalf("a second time changes %v to %v", next.IPConfigurations, second.IPConfigurations)
		}
		touched := map[lb.Family]int{}
		for i, ip := range next.IPConfigurations {
			old := before[i]
			if !slices.Equal(old, shown.IPConfigurations[i].Pools) {
				t.Fatalf("what was shown is changed to %v", shown.IPConfigurations[i].Pools)
			}
			if slices.Equal(old, ip.Pools) {
				continue
			}
			touched[ip.Family]++
			wanted := func(id string) bool {
				return slices.ContainsFunc(want[ip.Family], func(w lb.PoolID) bool { return string(w.Key()) == fold(id) })
			}
			foreign := func(ids []string) []string {
				return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return own.HasPool(id) || wanted(id) })
			}
			if !slices.Equal(foreign(old), foreign(ip.Pools)) {
				t.Fatalf("foreign pools were %v and are %v", foreign(old), foreign(ip.Pools))
			}
			for _, id := range ip.Pools {
				if !slices.Contains(old, id) && !wanted(id) {
					t.Fatalf("%s is added, and not wanted", id)
				}
			}
			for _, id := range old {
				if !slices.Contains(ip.Pools, id) && !own.HasPool(id) && !wanted(id) {
					t.Fatalf("%s is removed, and not ours", id)
				}
			}
		}
		for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
			if touched[family] > 1 {
				t.Fatalf("%d addresses of %s are changed", touched[family], family)
			}
			at := slices.IndexFunc(next.IPConfigurations, func(ip lb.IPConfiguration) bool {
				return ip.Family == family && !slices.ContainsFunc(want[family], func(w lb.PoolID) bool {
					return !slices.ContainsFunc(ip.Pools, func(id string) bool { return fold(id) == string(w.Key()) })
				})
			})
			if len(want[family]) > 0 && at < 0 && !slices.Contains(next.MissingFamilies, family) {
				t.Fatalf("no address of %s is in all of %v", family, want[family])
			}
		}
		if next.Changed != (touched[lb.IPv4]+touched[lb.IPv6] > 0) {
			t.Fatalf("changed is %v", next.Changed)
		}
	})
}
