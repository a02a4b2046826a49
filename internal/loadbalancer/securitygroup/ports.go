// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"net/netip"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// Azure reads and writes security groups. Its errors wrap *armerror.Fault.
type Azure interface {
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error)
}

// Cluster is the current snapshot of the cluster. Its methods do not block.
type Cluster interface {
	// ExposedServices returns all Services of type LoadBalancer, of any controller, and those that may have Azure
	// resources.
	ExposedServices() []ExposedService
	// NamespaceBounds returns the limits of a namespace.
	NamespaceBounds(namespace string) service.NamespaceSettings
	// NodeAddresses returns the addresses of all nodes. NodesOf returns those behind a load balancer, or all for
	// Services with dedicated pools; false if unknown.
	NodeAddresses() []netip.Addr
	NodesOf(on lb.LoadBalancerID, allNodes bool) ([]netip.Addr, bool)
}

// ExposedService is a Service with the addresses and ports where it receives flows.
type ExposedService struct {
	Owner string
	// Service is namespace/name.
	Service string
	// Addresses are those in its status.
	Addresses []netip.Addr
	NodePorts []int32
	// Additional are its additional addresses.
	Additional []netip.Addr
	// Requested are the addresses and the names of public IPs that it requests, valid or not.
	Requested []string
	// GatewayLoadBalancers are those that it requests, valid or not.
	GatewayLoadBalancers []string
}

// Config configures a Group. All fields except Lease are required.
type Config struct {
	// ID is the resource ID of the group.
	ID      lb.ResourceID
	Azure   Azure
	Cluster Cluster
	// Lease excludes other writers during a write; nil for none.
	Lease      conflict.Lease
	Conflicts  *conflict.Conflicts
	InProgress *conflict.InProgress
	// OnConflict reports a second attempt after a 412, and whether it succeeded.
	OnConflict func(settled bool)
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
	// previousHosts are the cluster's destinations at the last write: the next write removes unused ones.
	previousHosts map[netip.Addr]bool
	// nodes are the addresses of current nodes, and of former ones that rules still contain, because the
	// demand of Services with ports there was unknown.
	nodes map[netip.Addr]bool
	// firstNamed is the first Service that named an additional address.
	firstNamed map[netip.Addr]string
	// lastRules are the rules after the last write, ignoring conflicts.
	lastRules []lb.SecurityRule
	// usage is the usage of the group.
	usage usageTracker
}

// New returns a Group.
func New(cfg Config) *Group {
	g := &Group{cfg: cfg, known: map[string]Demand{}, previousHosts: map[netip.Addr]bool{}, nodes: map[netip.Addr]bool{}}
	g.usage.readSlot = make(chan struct{}, 1)
	return g
}

// RecordInitialNodes records the current nodes before the first write, because rules may contain nodes deleted by then.
func (g *Group) RecordInitialNodes() { g.recordNodes(g.cfg.Cluster.NodeAddresses(), nil) }

func (g *Group) displayName() string { return "security group " + g.cfg.ID.Name }
