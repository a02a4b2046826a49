// SPDX-License-Identifier: Apache-2.0

package nic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

func interfaces(pools string) []lb.InterfaceConfiguration {
	return []lb.InterfaceConfiguration{{Name: "nic", Primary: true, IPConfigurations: []lb.IPConfiguration{{Name: "ip", Family: lb.IPv4, Primary: true, Pools: ids(pools)}}}}
}

func scaleSet(mode lb.UpgradeMode, pools string) lb.ScaleSet {
	return lb.ScaleSet{ID: blue, Etag: "e1", Provisioning: lb.Succeeded, Uniform: true, UpgradeMode: mode, Interfaces: interfaces(pools)}
}

// formatPlan formats the next actions.
func formatPlan(s nic.ScaleSetPlan) string {
	var values []string
	if s.Model != nil {
		values = append(values, "model: "+names(s.Model.Interfaces[0].IPConfigurations[0].Pools))
	}
	if len(s.Upgrade) > 0 {
		values = append(values, "upgrade "+strings.Join(s.Upgrade, ","))
	}
	for _, i := range s.Write {
		values = append(values, fmt.Sprintf("write %s: %s", i.ID, names(i.Interfaces[0].IPConfigurations[0].Pools)))
	}
	for _, w := range s.Waiting {
		values = append(values, w.Reason)
	}
	return strings.Join(values, "; ")
}

const k8s = "kubernetes/k8s"

func TestScaleSet(t *testing.T) {
	latest := func(id, pools string) lb.Instance {
		return lb.Instance{ScaleSet: blue, ID: id, Provisioning: lb.Succeeded, LatestModel: true, Interfaces: interfaces(pools)}
	}
	behind := func(id, pools string) lb.Instance { i := latest(id, pools); i.LatestModel = false; return i }
	in := func(i lb.Instance, p lb.Provisioning) lb.Instance { i.Provisioning = p; return i }
	protected := func(i lb.Instance) lb.Instance { i.Protected = true; return i }
	all := func(set ...lb.Instance) []lb.Instance { return set }
	yes := map[string]bool{"0": true, "1": true, "2": true}
	for _, tt := range []struct {
		name      string
		mode      lb.UpgradeMode // default Manual
		model     string
		instances []lb.Instance
		members   string // instances in kubernetes/k8s
		nodes     string // other nodes
		gone      string // instances of deleted nodes
		known     nic.ScaleSetState
		want      string
	}{
		{name: "the model goes first", model: "o/x", instances: all(latest("0", "o/x"), latest("1", "o/x")), members: "0 1", want: "model: o/x kubernetes/k8s"},
		{name: "what only Weir has changed is upgraded in one batch", model: k8s, instances: all(behind("0", ""), behind("1", "")), members: "0 1", known: nic.ScaleSetState{UpToDate: yes}, want: "upgrade 0,1"},
		{name: "what another client has changed, too, is written by itself", model: k8s, instances: all(behind("0", ""), behind("1", "o/x")), members: "0 1", known: nic.ScaleSetState{UpToDate: map[string]bool{"0": true}}, want: "upgrade 0; write 1: o/x kubernetes/k8s"},
		{name: "an excluded node leaves by its own write", model: k8s, instances: all(latest("0", k8s), latest("1", k8s)), members: "0", nodes: "1", known: nic.ScaleSetState{UpToDate: yes}, want: "write 1: "},
		{name: "also where an upgrade could follow", model: k8s, instances: all(latest("0", k8s), behind("1", k8s)), members: "0", nodes: "1", known: nic.ScaleSetState{UpToDate: yes}, want: "write 1: "},
		{name: "an excluded node that never was in is left alone", model: k8s, instances: all(latest("0", k8s), behind("1", "o/x")), members: "0", nodes: "1", want: ""},
		{name: "an instance that is no node yet stays in what the model gave it", model: k8s, instances: all(latest("0", k8s), latest("1", k8s)), members: "0", want: ""},
		{name: "one whose node is gone leaves", model: k8s, instances: all(latest("0", k8s), latest("1", "o/x "+k8s)), members: "0", gone: "1", want: "write 1: o/x"},
		{name: "one whose node is gone, where Azure upgrades", mode: lb.UpgradeAutomatic, model: k8s, instances: all(latest("0", k8s), latest("1", k8s)), members: "0", gone: "1", want: "write 1: "},
		{name: "one whose node is gone, and that has left", mode: lb.UpgradeRolling, model: k8s, instances: all(latest("0", k8s), behind("1", "")), members: "0", gone: "1", want: ""},
		{name: "an instance that is no node leaves what the model has no more", instances: all(latest("0", k8s)), want: "write 0: "},
		{name: "all as it shall be, though not at the newest model", model: k8s, instances: all(behind("0", k8s)), members: "0", want: ""},
		{name: "instances that Azure is at work on", model: k8s, members: "0 1 2 3 4", instances: all(in(behind("0", ""), "Creating"), in(behind("1", ""), lb.Updating), in(behind("2", ""), "Deallocating"), in(behind("3", ""), lb.Deleting), behind("4", "")),
			want: "write 4: kubernetes/k8s; instance 0 of scale set blue is Creating; instance 1 of scale set blue is Updating; instance 2 of scale set blue is Deallocating"},
		{name: "an instance whose last write failed", model: k8s, instances: all(in(behind("0", k8s), lb.Failed)), members: "0", want: "write 0: kubernetes/k8s"},
		{name: "in the order of their numbers", model: k8s, instances: all(behind("10", ""), behind("9", "")), members: "9 10", want: "write 9: kubernetes/k8s; write 10: kubernetes/k8s"},
		{name: "Automatic is waited for", mode: lb.UpgradeAutomatic, model: k8s, instances: all(behind("0", ""), latest("1", k8s)), members: "0 1", known: nic.ScaleSetState{UpToDate: yes},
			want: "instance 0 of scale set blue is not upgraded to the scale set's model yet, which its upgrade policy Automatic leaves to Azure"},
		{name: "Rolling is waited for", mode: lb.UpgradeRolling, model: k8s, instances: all(behind("0", "")), members: "0",
			want: "instance 0 of scale set blue is not upgraded to the scale set's model yet, which its upgrade policy Rolling leaves to Azure"},
		{name: "but not for ever", mode: lb.UpgradeRolling, model: k8s, instances: all(behind("0", "")), members: "0", known: nic.ScaleSetState{UpgradeTimedOut: yes}, want: "write 0: kubernetes/k8s"},
		{name: "nor where nothing but Weir's own write has put it behind", mode: lb.UpgradeAutomatic, model: k8s, instances: all(behind("0", "")), members: "0", known: nic.ScaleSetState{WrittenAlone: yes}, want: "write 0: kubernetes/k8s"},
		{name: "nor for what Azure passes over", mode: lb.UpgradeAutomatic, model: k8s, instances: all(protected(behind("0", ""))), members: "0", want: "write 0: kubernetes/k8s"},
		{name: "which an upgrade passes over, too", model: k8s, instances: all(protected(behind("0", ""))), members: "0", known: nic.ScaleSetState{UpToDate: yes}, want: "write 0: kubernetes/k8s"},
		{name: "an excluded node is nothing that Azure upgrades", mode: lb.UpgradeAutomatic, model: k8s, instances: all(latest("0", k8s), behind("1", k8s)), members: "0", nodes: "1", want: "write 1: "},
		{name: "at the newest model, and somebody took it out", mode: lb.UpgradeAutomatic, model: k8s, instances: all(latest("0", "")), members: "0", want: "write 0: kubernetes/k8s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.mode == "" {
				tt.mode = lb.UpgradeManual
			}
			want := newDesired(tt.members, tt.nodes, tt.gone)
			steps := nic.PlanScaleSet(scaleSet(tt.mode, tt.model), tt.instances, want, nic.NewManagedPools(nil, poolIDs(k8s)), tt.known)
			if got := formatPlan(steps); got != tt.want || steps.IsDone() != (tt.want == "") {
				t.Errorf("got %q, done %v; want %q", got, steps.IsDone(), tt.want)
			}
		})
	}
}

// newDesired puts members into kubernetes/k8s; nodes are in no pool, and gone have to leave it.
func newDesired(members, nodes, gone string) nic.Desired {
	p := nic.Pool{ID: pool(k8s), Family: lb.IPv4, Configuration: "kubernetes", AllNodes: true}
	for id := range strings.FieldsSeq(members) {
		p.Members = append(p.Members, instance(id))
	}
	var others []nic.Node
	for id := range strings.FieldsSeq(nodes) {
		others = append(others, nic.Node{Machine: instance(id)})
		p.ToRemove = append(p.ToRemove, instance(id))
	}
	for id := range strings.FieldsSeq(gone) {
		p.ToRemove = append(p.ToRemove, instance(id))
	}
	return nic.NewDesired([]nic.Pool{p}, others)
}

// An instance of a node that the pool does not know yet retains the model's pools.
func TestNodeThatPoolDoesNotListYet(t *testing.T) {
	in := func(id, pools string) lb.Instance {
		return lb.Instance{ScaleSet: blue, ID: id, Provisioning: lb.Succeeded, LatestModel: true, Interfaces: interfaces(pools)}
	}
	every := func(name string, members, leaves []nic.Machine) nic.Pool {
		return nic.Pool{ID: pool(name), Family: lb.IPv4, Configuration: "kubernetes", AllNodes: true, Members: members, ToRemove: leaves}
	}
	old, young := []nic.Machine{instance("0")}, []nic.Machine{instance("0"), instance("1")}
	nodes := []nic.Node{{Machine: instance("0"), Configuration: "kubernetes"}, {Machine: instance("1"), Configuration: "kubernetes"}}
	const both = "kubernetes-internal/k8s kubernetes/k8s"
	for _, tt := range []struct {
		name  string
		pools []nic.Pool
		want  string
	}{
		{"nothing of it", []nic.Pool{every("kubernetes-internal/k8s", old, nil), every(k8s, old, nil)}, ""},
		{"one of two", []nic.Pool{every("kubernetes-internal/k8s", old, nil), every(k8s, young, nil)}, ""},
		{"both", []nic.Pool{every("kubernetes-internal/k8s", young, nil), every(k8s, young, nil)}, ""},
		{"one has it leave", []nic.Pool{every("kubernetes-internal/k8s", old, young[1:]), every(k8s, old, nil)}, "write 1: kubernetes/k8s"},
		{"both have it leave", []nic.Pool{every("kubernetes-internal/k8s", old, young[1:]), every(k8s, old, young[1:])}, "write 1: "},
	} {
		own := nic.NewManagedPools(nil, []lb.PoolID{pool("kubernetes-internal/k8s"), pool(k8s)})
		got := formatPlan(nic.PlanScaleSet(scaleSet(lb.UpgradeManual, both), []lb.Instance{in("0", both), in("1", both)}, nic.NewDesired(tt.pools, nodes), own, nic.ScaleSetState{}))
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Instances in two configurations: the model keeps its configuration as long as an instance uses
// it, because an upgrade to another would remove them. Other instances are written directly.
func TestAScaleSetThatIsSpread(t *testing.T) {
	in := func(id, pools string) lb.Instance {
		return lb.Instance{ScaleSet: blue, ID: id, Provisioning: lb.Succeeded, LatestModel: true, Interfaces: interfaces(pools)}
	}
	for _, tt := range []struct{ placed, model, want string }{
		{"aab", "a/k8s", "write 2: b/k8s"},
		{"abb", "a/k8s", "write 1: b/k8s; write 2: b/k8s"},
		{"abb", "", "model: b/k8s"},
		{"abb", "b/k8s", "write 1: b/k8s; write 2: b/k8s"},
		{"bbb", "a/k8s", "model: b/k8s"},
		{"   ", "a/k8s", "model: "},
	} {
		pools := []nic.Pool{
			{ID: pool("a/k8s"), Family: lb.IPv4, Configuration: "a", AllNodes: true}, {ID: pool("b/k8s"), Family: lb.IPv4, Configuration: "b", AllNodes: true},
		}
		var nodes []nic.Node
		for n, at := range tt.placed {
			m := instance(fmt.Sprint(n))
			nodes = append(nodes, nic.Node{Machine: m, Configuration: strings.TrimSpace(string(at))})
			for p := range pools {
				if pools[p].Configuration == string(at) {
					pools[p].Members = append(pools[p].Members, m)
				}
			}
		}
		own := nic.NewManagedPools(nil, poolIDs("a/k8s b/k8s"))
		got := formatPlan(nic.PlanScaleSet(scaleSet(lb.UpgradeAutomatic, tt.model), []lb.Instance{in("0", "a/k8s"), in("1", "a/k8s"), in("2", "a/k8s")}, nic.NewDesired(pools, nodes), own, nic.ScaleSetState{}))
		if got != tt.want {
			t.Errorf("placed on %q, the model in %q: got %q, want %q", tt.placed, tt.model, got, tt.want)
		}
	}
}

// Scale sets that block, and those that need nothing.
func TestScaleSetThatIsNotReady(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*lb.ScaleSet)
		want   string
	}{
		{"updating", func(s *lb.ScaleSet) { s.Provisioning = lb.Updating }, "scale set blue is Updating"},
		{"failed", func(s *lb.ScaleSet) { s.Provisioning = lb.Failed }, "model: kubernetes/k8s"},
		{"deleting", func(s *lb.ScaleSet) { s.Provisioning = lb.Deleting }, ""},
		{"flexible", func(s *lb.ScaleSet) { s.Uniform = false }, ""},
		{"two interfaces, none primary", func(s *lb.ScaleSet) {
			s.Interfaces[0].Primary = false
			s.Interfaces = append(s.Interfaces, s.Interfaces[0])
		}, "none of the network interfaces of scale set blue is primary"},
		{"updating, and its model is as it shall be", func(s *lb.ScaleSet) { s.Provisioning, s.Interfaces = lb.Updating, interfaces(k8s) }, "write 0: kubernetes/k8s"},
		{"no address", func(s *lb.ScaleSet) { s.Interfaces[0].IPConfigurations = nil }, "write 0: kubernetes/k8s; scale set blue has no IPv4 address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := scaleSet(lb.UpgradeManual, "")
			tt.change(&set)
			i := lb.Instance{ScaleSet: blue, ID: "0", Provisioning: lb.Succeeded, Interfaces: interfaces("")}
			if got := formatPlan(nic.PlanScaleSet(set, []lb.Instance{i}, newDesired("0", "", ""), nil, nic.ScaleSetState{})); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Inputs are not modified.
func TestStepsLeaveWhatIsShown(t *testing.T) {
	set, i := scaleSet(lb.UpgradeManual, "o/x"), lb.Instance{ScaleSet: blue, ID: "0", Interfaces: interfaces("o/y")}
	before := slices.Clone(set.Interfaces[0].IPConfigurations[0].Pools)
	nic.PlanScaleSet(set, []lb.Instance{i}, newDesired("0", "", ""), nil, nic.ScaleSetState{})
	if !slices.Equal(before, set.Interfaces[0].IPConfigurations[0].Pools) || names(i.Interfaces[0].IPConfigurations[0].Pools) != "o/y" {
		t.Error("it is")
	}
}
