// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"net/netip"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
)

// Azure reads and writes security groups. Its errors carry a *fault.Fault.
type Azure interface {
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error)
}

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	// Reached returns all Services of type LoadBalancer, whoever serves them, and those of
	// which Azure may hold something.
	Reached() []Reached
	// Bounds returns the bounds that the Namespace of this name sets.
	Bounds(namespace string) bound.Settings
	// Nodes returns the addresses of all nodes, and NodesOf those of the nodes behind a load
	// balancer, or, of a Service with pools of its own, anywhere; false if they are not known yet.
	Nodes() []netip.Addr
	NodesOf(on lb.LoadBalancerID, anywhere bool) ([]netip.Addr, bool)
}

// Reached is where a Service of the cluster is reached, as far as Kubernetes shows.
type Reached struct {
	Owner string
	// Service is its namespace and name, with a slash.
	Service string
	// Addresses are those that its status shows.
	Addresses []netip.Addr
	NodePorts []int32
	// Additional are the further addresses that it names.
	Additional []netip.Addr
}

// Config is what a Group works with. All fields but Lease are needed.
type Config struct {
	// ID is that of the group.
	ID      lb.ResourceID
	Azure   Azure
	Cluster Cluster
	// Lease keeps other controllers away during a write; nil is none.
	Lease      contest.Lease
	Contests   *contest.Contests
	InProgress *contest.InProgress
	// Overtaken is told that a write met 412 and was tried a second time, and whether that went
	// well.
	Overtaken func(settled bool)
	// RequireEffective refuses Services that say who may connect where the group is not there,
	// or guards nothing.
	RequireEffective bool
}

// Group is the cluster's security group. Begin, Write and Knows are for one goroutine at a time, and nobody
// else of this process writes the group; the other methods may be called from any goroutine.
type Group struct {
	cfg Config
	// known are the Services for which the group holds what they want, by owner, and those that
	// leave and for which it is closed.
	known map[string]Demand
	// had are the destinations that were ours at the last write: those that nobody asks for
	// any more are closed by the next.
	had map[netip.Addr]bool
	// nodes are those that this process has seen: those that are there, and those that left and that
	// rules still name, because it was not known yet what the Services with ports there want.
	nodes map[netip.Addr]bool
	// holds says which Service was the first to name an additional address.
	holds map[netip.Addr]string
	// left are the rules of the group as the last write left them, or would have without contests.
	left []lb.SecurityRule
	// room is what is known of how full the group is.
	room ledger
}

// New returns a Group.
func New(cfg Config) *Group {
	g := &Group{cfg: cfg, known: map[string]Demand{}, had: map[netip.Addr]bool{}, nodes: map[netip.Addr]bool{}}
	g.room.reading = make(chan struct{}, 1)
	return g
}

// Begin notes the nodes that are there, before the first write: of those that leave by then the
// rules may know.
func (g *Group) Begin() { g.sees(g.cfg.Cluster.Nodes(), nil) }

func (g *Group) name() string { return "security group " + g.cfg.ID.Name }
