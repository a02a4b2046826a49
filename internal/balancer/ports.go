// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/leftpool"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/privateip"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/securitygroup"
	"weir.dev/weir/internal/service"
)

// Azure reads and writes load balancers and public IPs. Its errors carry a *fault.Fault.
// It is called from several goroutines at once.
type Azure interface {
	// Enter asks for leave to work on a load balancer; see poolupdate.Azure.
	Enter(id lb.LoadBalancerID) (until time.Time, why string)
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error)
	// PutLoadBalancer writes what was read, or makes what has no etag, waits until Azure
	// is done and returns what it then shows.
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
	DeleteLoadBalancer(ctx context.Context, b lb.LoadBalancer) error
	// Machines returns a pool with the virtual machine of each network interface in it.
	Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error)
}

// Lanes are the lanes of the pools; poolupdate.Lanes are these.
type Lanes interface {
	// Lock takes the lane of a load balancer: no pool of it is written until unlock.
	Lock(ctx context.Context, id lb.LoadBalancerID) (unlock func(), err error)
	// Carry gives the pools that have a change waiting their newest addresses, while the
	// lane is locked. settled has to be called once: with what Azure shows after the write,
	// or with nil if it failed; mayLand says that it may land all the same.
	Carry(ctx context.Context, id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, settled func(shown []lb.Pool, mayLand bool))
}

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	// Owners returns the owners of all Services that have a load balancer of Weir's, or
	// are to have one.
	Owners() []string
	// Fresh returns what a pool is to hold that is about to be made for a Service; none for one
	// that a BackendPool keeps, whose lane fills it.
	Fresh(service string, on lb.LoadBalancerID, pool service.Pool) []lb.Address
	// Awaits reports whether flows have to wait for a pool of a Service, of which Azure shows this: it
	// lacks members that are to be in it. Network interfaces are counted, whosever they are.
	Awaits(service string, on lb.LoadBalancerID, pool service.Pool, is lb.Pool) bool
	// Converts reports whether there is a BackendPool of a shared pool that Weir made, and that has the
	// other kind of members in it than azure.json says, and whether one is paused.
	Converts(pool lb.PoolID) (is, paused bool)
	// Foreign returns, for people, those members of a pool of Services that Weir did not put there:
	// addresses, and network interfaces whose machine is known to the pool and no node.
	Foreign(ctx context.Context, pool lb.Pool) ([]string, error)
	// Fills reports whether there is a BackendPool of a pool that Weir made, and Binds whether there is one that anybody
	// made.
	Fills(pool lb.PoolID) bool
	Binds(pool lb.PoolID) bool
	// Reached returns all Services of type LoadBalancer, whoever serves them, and those of
	// which Azure may hold something.
	Reached() []securitygroup.Reached
	// AllowedPublicIPs returns the annotation grant.PublicIPAnnotation of a Namespace.
	AllowedPublicIPs(namespace string) string
	// Sharers returns what Services ask of the frontends that they are on; see privatelinkround.Cluster.
	Sharers(owners map[string]bool) map[string]privatelink.Sharer
	// Bounds returns the bounds that the Namespace of this name sets.
	Bounds(namespace string) bound.Settings
	// Nodes returns the addresses of all nodes, and NodesOf those of the nodes behind a load
	// balancer, or, of a Service with pools of its own, anywhere; false if they are not known yet.
	Nodes() []netip.Addr
	NodesOf(on lb.LoadBalancerID, anywhere bool) ([]netip.Addr, bool)
}

// Config is what the Balancers work with. All fields but PrivateLinks, Emptied, Owners,
// PrivateIPs, LeftPools, Behaviour, Lease, Writes and Made are needed.
type Config struct {
	Settings
	Azure Azure
	// PrivateLinks reads and writes Private Link Services; nil leaves them alone.
	PrivateLinks privatelinkround.Azure
	Lanes        Lanes
	Cluster      Cluster
	// Emptied is true where network interfaces have left as soon as somebody waits for that: nothing
	// is written.
	Emptied bool
	// Owners persists which namespaces own public IPs that Weir did not make; nil keeps them in memory.
	Owners publicip.OwnerStore
	// PrivateIPs persists for which namespaces private addresses are reserved; nil keeps them in memory.
	PrivateIPs privateip.Store
	// LeftPools persists which pools Weir made and left to the addresses of others; nil keeps them in memory.
	LeftPools leftpool.Store
	// Owed returns the address that a private frontend has to get though its Service leaves that to Azure, and whether
	// there is one; nil is none.
	Owed func(f lb.Frontend) (netip.Addr, bool)
	// Behaviour is what is known of Azure; what it does not know is not counted on.
	Behaviour behaviour.Behaviour
	// Lease keeps other controllers away during a write; nil is none.
	Lease contest.Lease
	// Writes divides what Weir may write among namespaces; nil limits none.
	Writes *pace.Budgets
	// Deferred counts Services that have to wait for a write, by the reason; nil counts none.
	Deferred func(reason string)
	// Done is told what came of a request, from several goroutines at once.
	Done func(Result)
	// Made is told of a load balancer that was not there and is made: whoever was on it has to be asked for
	// again. It is called from several goroutines at once; nil is nobody.
	Made func(lb.LoadBalancerID)
	// Overtaken is told that a write met 412 and was tried a second time, and whether that went
	// well, from several goroutines at once; nil is nobody.
	Overtaken func(resource string, settled bool)
	Log       *slog.Logger
}

// Settings are the cluster's.
type Settings struct {
	service.Settings
	// Place is where load balancers are; its Name is not used.
	Place lb.LoadBalancerID
	// Location is the region of what is made.
	Location string
	// Configurations are the cluster's load balancers, at least one; each has an internal
	// twin.
	Configurations []service.Configuration
	// MostRules is how many rules a load balancer may have, and RulesBy names what sets it; empty is
	// Azure.
	MostRules int
	RulesBy   string
	// SecurityGroup is the network security group of the nodes; without a name none is
	// written.
	SecurityGroup lb.ResourceID
	// RequireEffectiveRestrictions refuses Services that say who may connect where the group
	// is not there, or guards nothing.
	RequireEffectiveRestrictions bool
	// PodSubnets are the names of the subnets of pods, MostPrivateLinks is how many Private Link
	// Services a load balancer may have, and OpensSubnets lets network policies be turned off for them.
	PodSubnets       []string
	MostPrivateLinks int
	OpensSubnets     bool
}

// names are those of all load balancers that are the cluster's.
func (s Settings) names() []string {
	var all []string
	for _, c := range s.Configurations {
		all = append(all, service.LoadBalancerName(c.Name, false), service.LoadBalancerName(c.Name, true))
	}
	return all
}

// ids are those of all load balancers that are the cluster's.
func (s Settings) ids() []lb.LoadBalancerID {
	var all []lb.LoadBalancerID
	for _, name := range s.names() {
		id := s.Place
		id.Name = name
		all = append(all, id)
	}
	return all
}
