// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"cmp"
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
	models   map[string]Pools // by the key of the scale set
}

// Machine returns the pools of a machine; none for one that is no member of any.
func (d Desired) Machine(m Machine) Pools { return d.machines[m.Key()] }

// Node reports whether a machine is a node.
func (d Desired) Node(m Machine) bool {
	_, ok := d.machines[m.Key()]
	return ok
}

// Model returns the pools of the model of a uniform scale set, which its next instances get.
func (d Desired) Model(scaleSet lb.ResourceID) Pools { return d.models[scaleSet.Key()] }

// Desire returns where machines belong, of all pools and of all nodes, also those that belong in
// none. Azure takes an interface into the pools of one public load balancer and one internal one, so
// a machine goes into those of one configuration: the one that its node is placed on, else the
// first by name. Pools are in the order of their ids.
//
// A model has the pools of all nodes that an instance of its scale set is in; none if its instances
// are spread over configurations, for then it cannot be told where the next one belongs.
func Desire(pools []Pool, nodes []Node) Desired {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.ID.Key(), b.ID.Key()))
	})
	d := Desired{machines: map[string]Pools{}, models: map[string]Pools{}}
	of := map[string]string{} // the configuration of each machine
	for _, n := range nodes {
		d.machines[n.Machine.Key()] = Pools{}
		if n.Configuration != "" {
			of[n.Machine.Key()] = n.Configuration
		}
	}
	for _, p := range pools {
		for _, m := range p.Members {
			if _, placed := of[m.Key()]; !placed {
				of[m.Key()] = p.Configuration
			}
			if of[m.Key()] == p.Configuration {
				d.machines[m.Key()] = d.machines[m.Key()].with(p)
			}
		}
	}
	d.modelsOf(pools, of)
	return d
}

func (d Desired) modelsOf(pools []Pool, of map[string]string) {
	spread, one := map[string]bool{}, map[string]string{}
	for _, p := range pools {
		for _, m := range p.Members {
			set := m.ScaleSet.Key()
			if first, met := one[set]; met && first != of[m.Key()] {
				spread[set] = true
			}
			one[set] = of[m.Key()]
		}
	}
	for _, p := range pools {
		if !p.Every {
			continue
		}
		for _, m := range p.Members {
			if set := m.ScaleSet.Key(); m.Uniform() && !spread[set] && of[m.Key()] == p.Configuration {
				d.models[set] = d.models[set].with(p)
			}
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
