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
	// AllNodes is set for a pool of all nodes, including future ones.
	AllNodes bool
	Members  []Machine
	// ToRemove are machines to remove. A pool of all nodes decides nothing about newer machines,
	// which are in neither list.
	ToRemove []Machine
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
	machines map[string]Pools // by MachinePools.Key; empty for a node without pools
	// openPools are the pools of all nodes that have not decided about a node.
	openPools    map[string]Pools
	removedPools map[string]map[lb.PoolKey]bool
	// modelPools are by scale set key, the configuration with the most instances first.
	modelPools map[string][]Pools
}

// MachinePools returns the pools of a machine.
func (d Desired) MachinePools(m Machine) Pools { return d.machines[m.Key()] }

// IsNode reports whether a machine is a node.
func (d Desired) IsNode(m Machine) bool {
	_, ok := d.machines[m.Key()]
	return ok
}

// RetainedPools returns the pools that the machine need not leave.
func (d Desired) RetainedPools(m Machine, pools Pools) Pools {
	leaves := d.removedPools[m.Key()]
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

// OpenPools returns the pools of all nodes that have not decided about a node.
func (d Desired) OpenPools(m Machine) Pools { return d.openPools[m.Key()] }

// ModelCandidates returns the alternatives for a uniform scale set's model, one per configuration of its
// instances.
func (d Desired) ModelCandidates(scaleSet lb.ResourceID) []Pools { return d.modelPools[scaleSet.Key()] }

// ModelPools returns the one of [Desired.ModelCandidates] that the model already uses, else the first. A change
// would remove instances from pools with the next upgrade.
func (d Desired) ModelPools(scaleSet lb.ResourceID, observed []lb.InterfaceConfiguration) Pools {
	candidates := d.modelPools[scaleSet.Key()]
	for _, pools := range candidates {
		if hasPools(poolsInUse(pools, observed)) {
			return pools
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return candidates[0]
}

// NewDesired computes the pools of all machines. Azure allows an interface in the pools of one public
// and one internal load balancer, so a machine gets those of one configuration: its node's, else
// the first by name. Pools are sorted by ID.
//
// A model has the pools of all nodes of its instances; see [Desired.ModelPools].
func NewDesired(pools []Pool, nodes []Node) Desired {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.ID.Key(), b.ID.Key()))
	})
	d := Desired{machines: map[string]Pools{}, openPools: map[string]Pools{}, removedPools: map[string]map[lb.PoolKey]bool{}, modelPools: map[string][]Pools{}}
	configurationOf := map[string]string{} // the configuration of each machine
	for _, n := range nodes {
		d.machines[n.Machine.Key()] = Pools{}
		if n.Configuration != "" {
			configurationOf[n.Machine.Key()] = n.Configuration
		}
	}
	for _, p := range pools {
		for _, m := range p.ToRemove {
			if d.removedPools[m.Key()] == nil {
				d.removedPools[m.Key()] = map[lb.PoolKey]bool{}
			}
			d.removedPools[m.Key()][p.ID.Key()] = true
		}
		for _, m := range p.Members {
			if _, placed := configurationOf[m.Key()]; !placed {
				configurationOf[m.Key()] = p.Configuration
			}
			if configurationOf[m.Key()] == p.Configuration {
				d.machines[m.Key()] = d.machines[m.Key()].withPool(p)
			}
		}
	}
	d.addOpenPools(pools, nodes, configurationOf)
	d.addModelPools(pools, configurationOf)
	return d
}

func (d Desired) addOpenPools(pools []Pool, nodes []Node, configurationOf map[string]string) {
	for _, p := range pools {
		if !p.AllNodes {
			continue
		}
		decided := map[string]bool{}
		for _, m := range p.Members {
			decided[m.Key()] = true
		}
		for _, m := range p.ToRemove {
			decided[m.Key()] = true
		}
		for _, n := range nodes {
			key := n.Machine.Key()
			if on := configurationOf[key]; n.Machine.IsUniform() && !decided[key] && (on == "" || on == p.Configuration) {
				d.openPools[key] = d.openPools[key].withPool(p)
			}
		}
	}
}

func (d Desired) addModelPools(pools []Pool, configurationOf map[string]string) {
	type model struct {
		pools     Pools
		instances map[string]bool
	}
	sets := map[string]map[string]*model{} // by scale set and configuration
	for _, p := range pools {
		for _, m := range p.Members {
			if !p.AllNodes || !m.IsUniform() || configurationOf[m.Key()] != p.Configuration {
				continue
			}
			set := m.ScaleSet.Key()
			if sets[set] == nil {
				sets[set] = map[string]*model{}
			}
			if sets[set][p.Configuration] == nil {
				sets[set][p.Configuration] = &model{instances: map[string]bool{}}
			}
			configModel := sets[set][p.Configuration]
			configModel.pools, configModel.instances[m.Key()] = configModel.pools.withPool(p), true
		}
	}
	for set, byName := range sets {
		names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(byName[b].instances), len(byName[a].instances)), cmp.Compare(a, b))
		})
		for _, name := range names {
			d.modelPools[set] = append(d.modelPools[set], byName[name].pools)
		}
	}
}

func (ps Pools) withPool(p Pool) Pools {
	if ps == nil {
		ps = Pools{}
	}
	if !slices.ContainsFunc(ps[p.Family], func(id lb.PoolID) bool { return id.Key() == p.ID.Key() }) {
		ps[p.Family] = append(ps[p.Family], p.ID)
	}
	return ps
}
