// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"cmp"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Pool is a backend pool of network interfaces with its members.
type Pool struct {
	ID     lb.PoolID
	Family lb.Family
	// Configuration is the pool's load balancer configuration. Internal and public load balancers
	// share it.
	Configuration string
	// Every is set for a pool of all nodes, including future ones.
	Every   bool
	Members []Machine
	// Leaves are machines to remove. A pool of all nodes decides nothing about newer machines,
	// which are in neither list.
	Leaves []Machine
}

// Pools are the desired pools of an interface by IP family.
type Pools map[lb.Family][]lb.PoolID

// Node is a machine that is a cluster node.
type Node struct {
	Machine Machine
	// Configuration is empty if the node is not placed.
	Configuration string
}

// Desired maps machines and scale set models to pools.
type Desired struct {
	machines map[string]Pools // by Machine.Key; empty for a node without pools
	// open are the pools of all nodes that have not decided about a node.
	open   map[string]Pools
	leaves map[string]map[lb.PoolKey]bool
	// models are by scale set key, the configuration with the most instances first.
	models map[string][]Pools
}

// Machine returns the pools of a machine.
func (d Desired) Machine(m Machine) Pools { return d.machines[m.Key()] }

// Node reports whether a machine is a node.
func (d Desired) Node(m Machine) bool {
	_, ok := d.machines[m.Key()]
	return ok
}

// Stays returns the pools that the machine need not leave.
func (d Desired) Stays(m Machine, pools Pools) Pools {
	leaves := d.leaves[m.Key()]
	if len(leaves) == 0 {
		return pools
	}
	retained := Pools{}
	for family, ids := range pools {
		for _, id := range ids {
			if !leaves[id.Key()] {
				retained[family] = append(retained[family], id)
			}
		}
	}
	return retained
}

// Open returns the pools of all nodes that have not decided about a node.
func (d Desired) Open(m Machine) Pools { return d.open[m.Key()] }

// Models returns the alternatives for a uniform scale set's model, one per configuration of its
// instances.
func (d Desired) Models(scaleSet lb.ResourceID) []Pools { return d.models[scaleSet.Key()] }

// Model returns the one of [Desired.Models] that the model already uses, else the first. A change
// would remove instances from pools with the next upgrade.
func (d Desired) Model(scaleSet lb.ResourceID, observed []lb.InterfaceConfiguration) Pools {
	candidates := d.models[scaleSet.Key()]
	for _, pools := range candidates {
		if wants(within(pools, observed)) {
			return pools
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[0]
}

// Desire computes the pools of all machines. Azure allows an interface in the pools of one public
// and one internal load balancer, so a machine gets those of one configuration: its node's, else
// the first by name. Pools are sorted by ID.
//
// A model has the pools of all nodes of its instances; see [Desired.Model].
func Desire(pools []Pool, nodes []Node) Desired {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.ID.Key(), b.ID.Key()))
	})
	d := Desired{machines: map[string]Pools{}, open: map[string]Pools{}, leaves: map[string]map[lb.PoolKey]bool{}, models: map[string][]Pools{}}
	configurationOf := map[string]string{} // the configuration of each machine
	for _, n := range nodes {
		d.machines[n.Machine.Key()] = Pools{}
		if n.Configuration != "" {
			configurationOf[n.Machine.Key()] = n.Configuration
		}
	}
	for _, p := range pools {
		for _, m := range p.Leaves {
			if d.leaves[m.Key()] == nil {
				d.leaves[m.Key()] = map[lb.PoolKey]bool{}
			}
			d.leaves[m.Key()][p.ID.Key()] = true
		}
		for _, m := range p.Members {
			if _, placed := configurationOf[m.Key()]; !placed {
				configurationOf[m.Key()] = p.Configuration
			}
			if configurationOf[m.Key()] == p.Configuration {
				d.machines[m.Key()] = d.machines[m.Key()].with(p)
			}
		}
	}
	d.openOf(pools, nodes, configurationOf)
	d.modelsOf(pools, configurationOf)
	return d
}

func (d Desired) openOf(pools []Pool, nodes []Node, configurationOf map[string]string) {
	for _, p := range pools {
		if !p.Every {
			continue
		}
		decided := map[string]bool{}
		for _, m := range p.Members {
			decided[m.Key()] = true
		}
		for _, m := range p.Leaves {
			decided[m.Key()] = true
		}
		for _, n := range nodes {
			key := n.Machine.Key()
			if on := configurationOf[key]; n.Machine.Uniform() && !decided[key] && (on == "" || on == p.Configuration) {
				d.open[key] = d.open[key].with(p)
			}
		}
	}
}

func (d Desired) modelsOf(pools []Pool, configurationOf map[string]string) {
	type model struct {
		pools     Pools
		instances map[string]bool
	}
	sets := map[string]map[string]*model{} // by scale set and configuration
	for _, p := range pools {
		for _, m := range p.Members {
			if !p.Every || !m.Uniform() || configurationOf[m.Key()] != p.Configuration {
				continue
			}
			set := m.ScaleSet.Key()
			if sets[set] == nil {
				sets[set] = map[string]*model{}
			}
			if sets[set][p.Configuration] == nil {
				sets[set][p.Configuration] = &model{instances: map[string]bool{}}
			}
			one := sets[set][p.Configuration]
			one.pools, one.instances[m.Key()] = one.pools.with(p), true
		}
	}
	for set, byName := range sets {
		names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(byName[b].instances), len(byName[a].instances)), cmp.Compare(a, b))
		})
		for _, name := range names {
			d.models[set] = append(d.models[set], byName[name].pools)
		}
	}
}

func (ps Pools) with(p Pool) Pools {
	if ps == nil {
		ps = Pools{}
	}
	if !slices.ContainsFunc(ps[p.Family], func(id lb.PoolID) bool { return id.Key() == p.ID.Key() }) {
		ps[p.Family] = append(ps[p.Family], p.ID)
	}
	return ps
}
