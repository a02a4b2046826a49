// SPDX-License-Identifier: Apache-2.0

package nic_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

var (
	blue  = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeScaleSet, Name: "blue"}
	alone = nic.Machine{VM: lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeVirtualMachine, Name: "alone"}}
)

func instance(id string) nic.Machine { return nic.Machine{ScaleSet: blue, Instance: id} }

func formatPools(p nic.Pools) string {
	var pools []string
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		for _, id := range p[family] {
			pools = append(pools, id.LoadBalancer.Name+"/"+id.Name)
		}
	}
	return strings.Join(pools, " ")
}

func TestDesire(t *testing.T) {
	every := func(name, configuration string, members ...nic.Machine) nic.Pool {
		return nic.Pool{ID: pool(name), Family: lb.IPv4, Configuration: configuration, AllNodes: true, Members: members}
	}
	for _, tt := range []struct {
		name            string
		pools           []nic.Pool
		nodes           []nic.Node
		alone, of0, of1 string
		model           string
		oneIsNoNode     bool
	}{
		{
			name:  "all nodes, and the internal twin",
			pools: []nic.Pool{every("kubernetes/k8s", "kubernetes", alone, instance("0"), instance("1")), every("kubernetes-internal/k8s", "kubernetes", alone, instance("0"), instance("1"))},
			alone: "kubernetes-internal/k8s kubernetes/k8s", of0: "kubernetes-internal/k8s kubernetes/k8s", of1: "kubernetes-internal/k8s kubernetes/k8s", model: "kubernetes-internal/k8s kubernetes/k8s",
		},
		{
			name:  "an excluded node is a node that belongs in none",
			pools: []nic.Pool{every("kubernetes/k8s", "kubernetes", instance("0"))}, nodes: []nic.Node{{Machine: instance("1")}},
			of0: "kubernetes/k8s", model: "kubernetes/k8s",
		},
		{
			name: "an instance that is no node yet", pools: []nic.Pool{every("kubernetes/k8s", "kubernetes", instance("0"))},
			of0: "kubernetes/k8s", model: "kubernetes/k8s", oneIsNoNode: true,
		},
		{
			name:  "a pool that follows endpoints is none of the model's",
			pools: []nic.Pool{{ID: pool("kubernetes/shop-web"), Family: lb.IPv4, Configuration: "kubernetes", Members: []nic.Machine{instance("0")}}, every("kubernetes/k8s", "kubernetes", instance("0"), instance("1"))},
			of0:   "kubernetes/k8s kubernetes/shop-web", of1: "kubernetes/k8s", model: "kubernetes/k8s",
		},
		{
			name:  "a node goes where it is placed, and the model of instances that are spread to the first by name",
			pools: []nic.Pool{every("a/k8s", "a", alone, instance("0"), instance("1")), every("b/k8s", "b", alone, instance("0"), instance("1"))},
			nodes: []nic.Node{{instance("0"), "a"}, {instance("1"), "b"}, {alone, "b"}},
			alone: "b/k8s", of0: "a/k8s", of1: "b/k8s", model: "a/k8s",
		},
		{
			name:  "of instances that are spread the model goes where most are",
			pools: []nic.Pool{every("a/k8s", "a", instance("0"), instance("1"), instance("2")), every("b/k8s", "b", instance("0"), instance("1"), instance("2"))},
			nodes: []nic.Node{{instance("0"), "a"}, {instance("1"), "b"}, {instance("2"), "b"}},
			of0:   "a/k8s", of1: "b/k8s", model: "b/k8s",
		},
		{
			name:  "who is placed nowhere goes to the first by name",
			pools: []nic.Pool{every("b/k8s", "b", alone, instance("0"), instance("1")), every("a/k8s", "a", alone, instance("0"), instance("1"))},
			alone: "a/k8s", of0: "a/k8s", of1: "a/k8s", model: "a/k8s",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := nic.NewDesired(tt.pools, tt.nodes)
			for name, got := range map[string][2]string{
				"machine": {formatPools(d.MachinePools(alone)), tt.alone}, "instance 0": {formatPools(d.MachinePools(instance("0"))), tt.of0},
				"instance 1": {formatPools(d.MachinePools(instance("1"))), tt.of1}, "model": {formatPools(d.ModelPools(blue, nil)), tt.model},
			} {
				if got[0] != got[1] {
					t.Errorf("%s: got %q, want %q", name, got[0], got[1])
				}
			}
			if d.IsNode(instance("1")) == tt.oneIsNoNode || !d.IsNode(instance("0")) || d.IsNode(instance("7")) {
				t.Error("who is a node is not so")
			}
		})
	}
}

// No machine or model is ever in pools of two configurations.
func TestAMachineIsInOneConfiguration(t *testing.T) {
	machines := []nic.Machine{alone, instance("0"), instance("1"), instance("2")}
	rapid.Check(t, func(t *rapid.T) {
		configuration := map[lb.PoolKey]string{}
		var pools []nic.Pool
		for _, id := range poolIDs("a/k8s a-internal/k8s b/k8s b/web c/k8s") {
			c := strings.TrimSuffix(id.LoadBalancer.Name, "-internal")
			configuration[id.Key()] = c
			pools = append(pools, nic.Pool{
				ID: id, Family: rapid.SampledFrom([]lb.Family{lb.IPv4, lb.IPv6}).Draw(t, "family"), Configuration: c,
				AllNodes: rapid.Bool().Draw(t, "every"), Members: rapid.SliceOf(rapid.SampledFrom(machines)).Draw(t, "members"),
			})
		}
		var nodes []nic.Node
		for _, m := range rapid.SliceOfDistinct(rapid.SampledFrom(machines), nic.Machine.Key).Draw(t, "nodes") {
			nodes = append(nodes, nic.Node{Machine: m, Configuration: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "placed")})
		}
		d := nic.NewDesired(rapid.Permutation(pools).Draw(t, "order"), nodes)
		single := func(about string, p nic.Pools) {
			in := map[string]bool{}
			for _, ids := range p {
				for _, id := range ids {
					in[configuration[id.Key()]] = true
				}
			}
			if len(in) > 1 {
				t.Fatalf("%s is in %v", about, in)
			}
		}
		for _, m := range machines {
			single(m.String(), d.MachinePools(m))
		}
		for _, shown := range []string{"", "a/k8s", "b/k8s a-internal/k8s", "c/k8s o/x"} {
			single("the model", d.ModelPools(blue, interfaces(shown)))
		}
		if ordered := nic.NewDesired(pools, nodes); formatPools(ordered.MachinePools(alone)) != formatPools(d.MachinePools(alone)) {
			t.Fatalf("the order of the pools decides: %q, %q", formatPools(ordered.MachinePools(alone)), formatPools(d.MachinePools(alone)))
		}
	})
}
