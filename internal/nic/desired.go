// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"cmp"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Pool is a backend pool of network interfaces, and the machines that belong in it.
type Pool struct {
	ID     lb.PoolID
	Family lb.Family
	// Configuration names the load balancer configuration that the pool's load balancer belongs
	// to; an internal load balancer has that of its twin.
	Configuration string
	// Every is true for a pool of all nodes, in which machines belong that are yet to come. It is
	// false for one that follows the endpoints of a Service.
	Every   bool
	Members []Machine
	// Leaves are machines that Azure shows in the pool, and that have to leave. Of a machine that is neither,
	// a pool of all nodes says nothing: its node may be newer than what was handed over of the pool.
	Leaves []Machine
}

// Pools are the pools that an interface shall be in, by the family of its address.
type Pools map[lb.Family][]lb.PoolID

// Node is a machine that is a node of the cluster.
type Node struct {
	Machine Machine
	// Configuration is the load balancer configuration that the node is placed on; empty where
	// nothing says so.
	Configuration string
}

// Desired says where machines belong.
type Desired struct {
	machines map[string]Pools // by Machine.Key; those of a node are none, if it belongs in none
	// open are the pools of all nodes that say nothing of a machine which is a node, on the configuration that it
	// is on.
	open map[string]Pools
	// leaves are the pools that have machines leave.
	leaves map[string]map[lb.PoolKey]bool
	// models are by the key of the scale set, those of the configuration with the most instances first.
	models map[string][]Pools
}

// Machine returns the pools of a machine; none for one that is no member of any.
func (d Desired) Machine(m Machine) Pools { return d.machines[m.Key()] }

// Node reports whether a machine is a node.
func (d Desired) Node(m Machine) bool {
	_, ok := d.machines[m.Key()]
	return ok
}

// Stays returns those of pools that do not have a machine leave.
func (d Desired) Stays(m Machine, pools Pools) Pools {
	leaves := d.leaves[m.Key()]
	if len(leaves) == 0 {
		return pools
	}
	stays := Pools{}
	for family, ids := range pools {
		for _, id := range ids {
			if !leaves[id.Key()] {
				stays[family] = append(stays[family], id)
			}
		}
	}
	return stays
}

// Open are the pools of all nodes that have yet to say whether a node belongs in them.
func (d Desired) Open(m Machine) Pools { return d.open[m.Key()] }

// Models are the pools that the model of a uniform scale set may have, which its next instances get: those
// of each configuration that an instance belongs to.
func (d Desired) Models(scaleSet lb.ResourceID) []Pools { return d.models[scaleSet.Key()] }

// Model returns the pools of a model that shows these interfaces: where its instances are spread over
// configurations, those of the one that it is in already, else of the one with the most instances. An
// upgrade to another model would take all instances out that belong in the first.
func (d Desired) Model(scaleSet lb.ResourceID, shown []lb.InterfaceConfiguration) Pools {
	may := d.models[scaleSet.Key()]
	for _, pools := range may {
		if wants(within(pools, shown)) {
			return pools
		}
	}
	if len(may) == 0 {
		return nil
	}
	return may[0]
}

// Desire returns where machines belong, of all pools and of all nodes, also those that belong in
// none. Azure takes an interface into the pools of one public load balancer and one internal one, so
// a machine goes into those of one configuration: the one that its node is placed on, else the
// first by name. Pools are in the order of their ids.
//
// A model has the pools of all nodes that an instance of its scale set is in, of one configuration; see
// Desired.Model.
func Desire(pools []Pool, nodes []Node) Desired {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.ID.Key(), b.ID.Key()))
	})
	d := Desired{machines: map[string]Pools{}, open: map[string]Pools{}, leaves: map[string]map[lb.PoolKey]bool{}, models: map[string][]Pools{}}
	of := map[string]string{} // the configuration of each machine
	for _, n := range nodes {
		d.machines[n.Machine.Key()] = Pools{}
		if n.Configuration != "" {
			of[n.Machine.Key()] = n.Configuration
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
			if _, placed := of[m.Key()]; !placed {
				of[m.Key()] = p.Configuration
			}
			if of[m.Key()] == p.Configuration {
				d.machines[m.Key()] = d.machines[m.Key()].with(p)
			}
		}
	}
	d.openOf(pools, nodes, of)
	d.modelsOf(pools, of)
	return d
}

func (d Desired) openOf(pools []Pool, nodes []Node, of map[string]string) {
	for _, p := range pools {
		if !p.Every {
			continue
		}
		said := map[string]bool{}
		for _, m := range p.Members {
			said[m.Key()] = true
		}
		for _, m := range p.Leaves {
			said[m.Key()] = true
		}
		for _, n := range nodes {
			key := n.Machine.Key()
			if on := of[key]; n.Machine.Uniform() && !said[key] && (on == "" || on == p.Configuration) {
				d.open[key] = d.open[key].with(p)
			}
		}
	}
}

func (d Desired) modelsOf(pools []Pool, of map[string]string) {
	type model struct {
		pools     Pools
		instances map[string]bool
	}
	sets := map[string]map[string]*model{} // by the scale set and the configuration
	for _, p := range pools {
		for _, m := range p.Members {
			if !p.Every || !m.Uniform() || of[m.Key()] != p.Configuration {
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
	for set, by := range sets {
		names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(by[b].instances), len(by[a].instances)), cmp.Compare(a, b))
		})
		for _, name := range names {
			d.models[set] = append(d.models[set], by[name].pools)
		}
	}
}

// with returns the pools and another one, once.
func (ps Pools) with(p Pool) Pools {
	if ps == nil {
		ps = Pools{}
	}
	if !slices.ContainsFunc(ps[p.Family], func(id lb.PoolID) bool { return id.Key() == p.ID.Key() }) {
		ps[p.Family] = append(ps[p.Family], p.ID)
	}
	return ps
}
