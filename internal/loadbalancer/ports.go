// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/loadbalancer/securitygroup"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/zones"
)

// Azure reads and writes load balancers and public IPs. Errors carry a *armerror.Fault. Implementations are safe
// for concurrent use.
type Azure interface {
	// Enter returns zero if a write may start now, otherwise when to call again. reason is set if the throttle
	// gate is closed; see updater.Azure.
	Enter(id lb.LoadBalancerID) (until time.Time, reason string)
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error)
	// PutLoadBalancer updates a load balancer, or creates it if it has no etag, waits for the operation and
	// returns the new state.
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
	DeleteLoadBalancer(ctx context.Context, b lb.LoadBalancer) error
	// ResolveMachines returns the pool with the virtual machine of each network interface.
	ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error)
}

// Workers is implemented by package updater.
type Workers interface {
	// Lock locks a load balancer: none of its pools is written until unlock is called.
	Lock(ctx context.Context, id lb.LoadBalancerID) (unlock func(), err error)
	// StagePools returns the pools to write: existing ones unchanged, new ones empty. The load balancer must be locked.
	// Call settled exactly once: with the pools after the write, or nil if it failed; mayLand means the failed
	// write may still take effect.
	StagePools(id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, settled func(shown []lb.Pool, mayLand bool))
}

// Cluster reads the cached cluster state without blocking.
type Cluster interface {
	// ServiceOwners returns the owners of all Services that have or need a load balancer of Weir.
	ServiceOwners() []string
	// NeedsMembers reports whether flows must wait for the observed pool because it lacks members. All network
	// interfaces count, foreign ones included.
	NeedsMembers(s string, on lb.LoadBalancerID, pool service.Pool, p lb.Pool) bool
	// ConversionState reports whether a BackendPool made by Weir still puts the other kind of members into a shared
	// pool, and whether one is paused.
	ConversionState(pool lb.PoolID) (converting, paused bool)
	// MemberKind returns the kind of members that a BackendPool made by Weir adds to a shared pool.
	MemberKind(pool lb.PoolID) service.MemberKind
	// ForeignMembers describes the members of a Service pool that Weir did not add: addresses, and network interfaces
	// of machines that are not nodes.
	ForeignMembers(ctx context.Context, pool lb.Pool) ([]string, error)
	HasManagedPool(pool lb.PoolID) bool
	HasBackendPool(pool lb.PoolID) bool
	// ExposedServices returns all Services of type LoadBalancer, whatever controller serves them, and those with
	// possible parts in Azure.
	ExposedServices() []securitygroup.ExposedService
	AllowedPublicIPs(namespace string) string
	// FrontendServices returns the Private Link settings of Services at shared frontends; see desired.Cluster.
	FrontendServices(owners map[string]bool) map[string]desired.FrontendService
	NamespaceBounds(namespace string) service.NamespaceSettings
	NodeAddresses() []netip.Addr
	// NodesOf returns the addresses of the nodes behind a load balancer, or of all nodes for a Service with its
	// own pools; false if unknown.
	NodesOf(on lb.LoadBalancerID, allNodes bool) ([]netip.Addr, bool)
}

// Config holds dependencies and settings. Fields are required unless their comments say otherwise.
type Config struct {
	Settings
	Azure Azure
	// PrivateLinks reads and writes Private Link Services; nil disables them.
	PrivateLinks privatelink.Azure
	Workers      Workers
	Cluster      Cluster
	// SkipDrain means that pools lose their network interfaces at once: nothing is written (dry run).
	SkipDrain bool
	// Owners persists which namespaces own public IPs that Weir did not make; nil keeps them in memory.
	Owners publicip.OwnerStore
	// PublicIPGroups persists the other resource groups in which Weir creates public IPs; nil keeps them in memory.
	PublicIPGroups publicip.GroupStore
	// PrivateIPs persists private address reservations; nil keeps them in memory.
	PrivateIPs PrivateIPStore
	// LeftPools persists the pools that Weir left to foreign addresses; nil keeps them in memory.
	LeftPools LeftPoolStore
	// ReservedAddress returns the address that a dynamic private frontend must get, if any; nil means none.
	ReservedAddress func(f lb.Frontend) (netip.Addr, bool)
	// Zones are the availability zones of the regions; nil knows none.
	Zones *zones.Regions
	// Lease keeps other controllers away during a write; nil means none.
	Lease conflict.Lease
	// Writes divides the write budget among namespaces; nil means no limit.
	Writes *ratelimit.Budgets
	// OnDeferred counts deferred Services by reason; nil is allowed.
	OnDeferred func(reason string)
	// OnResult receives each result. It is called concurrently.
	OnResult func(Result)
	// OnRecreated is called after a load balancer was recreated, so that its Services are requeued. It is called
	// concurrently; nil is allowed.
	OnRecreated func(lb.LoadBalancerID)
	// OnPortsReleased is called with the Services that were rejected because of a port that another Service is about to
	// release: that one waits briefly for their requests. It is called concurrently and must not block; nil is allowed.
	OnPortsReleased func(services []string)
	// OnHealthPorts is called with the pools for which HealthPort changed. It is called concurrently and must neither
	// block nor call LoadBalancers; nil is allowed.
	OnHealthPorts func([]lb.PoolID)
	// OnConflict is called after a write that met 412 was retried; settled reports success. It is called
	// concurrently; nil is allowed.
	OnConflict func(resource string, settled bool)
	Log        *slog.Logger
}

// Settings are the cluster's settings.
type Settings struct {
	service.Settings
	// Place is the resource group of the load balancers; its Name is not used.
	Place    lb.LoadBalancerID
	Location string
	// ExtendedLocation is the edge zone of new load balancers; may be empty.
	ExtendedLocation string
	// DefaultZones are the zones of new public IPs and private frontends of Services that name none.
	DefaultZones zones.Choice
	// Configurations are the cluster's load balancers, at least one; each has an internal twin.
	Configurations []service.Configuration
	// MaxRules is the maximum number of rules per load balancer. RulesBy names the setting behind it; empty
	// means Azure's limit.
	MaxRules int
	RulesBy  string
	// SecurityGroup is the nodes' network security group; none is written if its name is empty.
	SecurityGroup lb.ResourceID
	// RequireEffectiveRestrictions rejects Services with client restrictions that the security group cannot
	// enforce.
	RequireEffectiveRestrictions bool
	// PodSubnets are the names of pod subnets. MaxPrivateLinks is the maximum number of Private Link Services
	// per load balancer. CanOpenSubnets allows network policies to be disabled on their subnets.
	PodSubnets      []string
	MaxPrivateLinks int
	CanOpenSubnets  bool
}

func (s Settings) loadBalancerNames() []string {
	var names []string
	for _, c := range s.Configurations {
		names = append(names, service.LoadBalancerName(c.Name, false), service.LoadBalancerName(c.Name, true))
	}
	return names
}

func (s Settings) loadBalancerIDs() []lb.LoadBalancerID {
	var ids []lb.LoadBalancerID
	for _, name := range s.loadBalancerNames() {
		id := s.Place
		id.Name = name
		ids = append(ids, id)
	}
	return ids
}
