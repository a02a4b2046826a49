// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"net/netip"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/loadbalancer/securitygroup"
	"weir.dev/weir/internal/service"
)

// Request asks for the load balancers to match one Service.
type Request struct {
	// Service is namespace/name.
	Service string
	// Owner is the prefix of the names of the Service's Azure resources.
	Owner   string
	Created time.Time
	// DedicatedPools are the names of pools that only this Service may have.
	DedicatedPools []string
	// RecordedPools are those DedicatedPools, on any load balancer, recorded as the Service's.
	RecordedPools []lb.PoolID
	// ManagedPools are the RecordedPools with a BackendPool made by Weir.
	ManagedPools []lb.PoolID
	// Desired is what the Service wants on On; nil if it leaves.
	Desired    *service.Spec
	On         lb.LoadBalancerID
	RemoveFrom []lb.LoadBalancerID
	// KeepFormer keeps the Service on RemoveFrom as well: its new addresses must serve first.
	KeepFormer bool
	// LoadBalancers are all load balancers that may hold parts of the Service, including those no longer configured.
	LoadBalancers []string
	// ProtectAddresses makes a request with Desired fail with a AddressLossError before it would remove an address.
	ProtectAddresses bool
	StatusAddresses  []netip.Addr
	// OnlyRestricts is set if the Service is in sync or only admits fewer clients; it is not deferred.
	OnlyRestricts bool
	// CloseOnly only removes access that Desired does not allow from the security group. Nothing is opened; only
	// Access and Internal of Desired matter.
	CloseOnly  bool
	RetryToken string
	// Groups are additional resource groups that may hold public IPs made for the Service.
	Groups       []string
	DeleteUnused bool
	// Retain keeps the public IPs made for the Service, and its private addresses, when it leaves them.
	Retain bool
	// LinkGroups are the resource groups that may hold a Private Link Service of the Service.
	LinkGroups []string
}

// Result is the outcome of a Request.
type Result struct {
	Request
	// Err is nil if Azure matches the Service. It carries a *armerror.Fault if Azure caused it.
	Err error
	// Addresses are the addresses of the wanted frontends, in order.
	Addresses []netip.Addr
	// Message is a message for the user after a success.
	Message string
	// Retained are unneeded pools retained for foreign members; also set with an error.
	Retained []plan.RetainedPart
	// Unused are public IPs made for the Service that are unused and retained.
	Unused []publicip.Unused
	// Conflicts are conflicts about the Service's parts: Azure differs from the spec, and Weir stopped writing
	// or retried since.
	Conflicts            []conflict.Conflict
	Changed              bool
	DeletedLoadBalancers []lb.LoadBalancerID
	// Pools are the pools that the Service needs now, with interim pools in place of unconverted ones.
	Pools []service.Pool
	// FillingPools are the pools that must fill before the request can continue. The Service keeps its present pools
	// and must request again.
	FillingPools []lb.PoolID
	// DrainingPools are the pools that block the deletion of a load balancer, or a conversion, until their network
	// interfaces have left. The Service must request again then.
	DrainingPools []plan.DrainingPool
	// NeedsDrain is set if a frontend retains an address that the Service needs elsewhere until these pools are
	// empty.
	NeedsDrain bool
	// MissingPools are its own and interim pools that do not exist in Azure.
	MissingPools []lb.PoolID
	// Link is the result for its Private Link Service. An error there does not affect the rest.
	Link privatelink.Result
}

// Conflict is a conflict in a Result.
type Conflict = conflict.Conflict

// ExposedService is a Service that a Cluster returns.
type ExposedService = securitygroup.ExposedService

// CodeUpdating is the code of a resource that another client is updating.
const CodeUpdating = conflict.CodeUpdating
