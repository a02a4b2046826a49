// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"net/netip"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
)

// Azure reads and writes security groups. Its errors wrap *fault.Fault.
type Azure interface {
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error)
}

// Cluster is the current snapshot of the cluster. Its methods do not block.
type Cluster interface {
	// Reached returns all Services of type LoadBalancer, of any controller, and those that may have Azure
	// resources.
	Reached() []Reached
	// Bounds returns the limits of a namespace.
	Bounds(namespace string) bound.Settings
	// Nodes returns the addresses of all nodes. NodesOf returns those behind a load balancer, or all for
	// Services with dedicated pools; false if unknown.
	Nodes() []netip.Addr
	NodesOf(on lb.LoadBalancerID, anywhere bool) ([]netip.Addr, bool)
}

// Reached is a Service with the addresses and ports where it receives flows.
type Reached struct {
	Owner string
	// Service is namespace/name.
	Service string
	// Addresses are those in its status.
	Addresses []netip.Addr
	NodePorts []int32
	// Additional are its additional addresses.
	Additional []netip.Addr
}

// Config configures a Group. All fields except Lease are required.
type Config struct {
	// ID is the resource ID of the group.
	ID      lb.ResourceID
	Azure   Azure
	Cluster Cluster
	// Lease excludes other writers during a write; nil for none.
	Lease      contest.Lease
	Contests   *contest.Contests
	InProgress *contest.InProgress
	// Overtaken reports a second attempt after a 412, and whether it succeeded.
	Overtaken func(settled bool)
	// RequireEffective rejects restricted Services if the group does not exist or is not attached.
	RequireEffective bool
}

// Group reconciles the cluster's security group. The methods that write rules or read the written ones are
// not safe for concurrent use, and nothing else in this process may write the group; the other methods are
// safe.
type Group struct {
	cfg Config
	// known are the Services with written rules, by owner, including those being removed.
	known map[string]Demand
	// had are the cluster's destinations at the last write: the next write removes unused ones.
	had map[netip.Addr]bool
	// nodes are the addresses of current nodes, and of former ones that rules still contain, because the
	// demand of Services with ports there was unknown.
	nodes map[netip.Addr]bool
	// holds is the first Service that named an additional address.
	holds map[netip.Addr]string
	// left are the rules after the last write, ignoring conflicts.
	left []lb.SecurityRule
	// room is the usage of the group.
	room ledger
}

// New returns a Group.
func New(cfg Config) *Group {
	g := &Group{cfg: cfg, known: map[string]Demand{}, had: map[netip.Addr]bool{}, nodes: map[netip.Addr]bool{}}
	g.room.reading = make(chan struct{}, 1)
	return g
}

// Begin records the current nodes before the first write, because rules may contain nodes deleted by then.
func (g *Group) Begin() { g.sees(g.cfg.Cluster.Nodes(), nil) }

func (g *Group) name() string { return "security group " + g.cfg.ID.Name }
