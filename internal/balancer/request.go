// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"net/netip"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/securitygroup"
	"weir.dev/weir/internal/service"
)

// Request asks for the load balancers to match one Service.
type Request struct {
	// Service is namespace/name.
	Service string
	// Owner is the prefix of the names of the Service's Azure resources.
	Owner   string
	Created time.Time
	// OwnPools are the names of pools that only this Service may have.
	OwnPools []string
	// HeldPools are those OwnPools, on any load balancer, recorded as the Service's.
	HeldPools []lb.PoolID
	// MadePools are the HeldPools with a BackendPool made by Weir.
	MadePools []lb.PoolID
	// Desired is what the Service wants on On; nil if it leaves.
	Desired *service.Spec
	On      lb.LoadBalancerID
	Leave   []lb.LoadBalancerID
	// Recorded are all load balancers that may hold parts of the Service, including those no longer configured.
	Recorded []string
	// Spare makes a request with Desired fail with a RemovalError before it would remove an address.
	Spare bool
	Shown []netip.Addr
	// Narrows is set if the Service is in sync or only admits fewer clients; it is not deferred.
	Narrows bool
	// Closes only removes access that Desired does not allow from the security group. Nothing is opened; only
	// Access and Internal of Desired matter.
	Closes bool
	Again  string
	// Groups are additional resource groups that may hold public IPs made for the Service.
	Groups       []string
	DeleteUnused bool
	// LinkGroups are the resource groups that may hold a Private Link Service of the Service.
	LinkGroups []string
}

type Result struct {
	Request
	// Err is nil if Azure matches the Service. It carries a *fault.Fault if Azure caused it.
	Err error
	// Addresses are the addresses of the wanted frontends, in order.
	Addresses []netip.Addr
	// Note is a message for the user after a success.
	Note string
	// Kept are unneeded pools retained for foreign members; also set with an error.
	Kept []plan.Kept
	// Unused are public IPs made for the Service that are unused and retained.
	Unused []publicip.Unused
	// Contests are conflicts about the Service's parts: Azure differs from the spec, and Weir stopped writing
	// or retried since.
	Contests []contest.Contest
	Changed  bool
	Gone     []lb.LoadBalancerID
	// Pools are the pools that the Service needs now, with interim pools in place of unconverted ones.
	Pools []service.Pool
	// Filling are the pools that must fill before the request can continue. The Service keeps its present pools
	// and must request again.
	Filling []lb.PoolID
	// Emptying are the pools that block the deletion of a load balancer, or a conversion, until their network
	// interfaces have left. The Service must request again then.
	Emptying []plan.Emptying
	// Awaits is set if a frontend retains an address that the Service needs elsewhere until these pools are
	// empty.
	Awaits bool
	// Without are its own and interim pools that do not exist in Azure.
	Without []lb.PoolID
	// Link is the result for its Private Link Service. An error there does not affect the rest.
	Link privatelinkround.Outcome
}

// Contest is a conflict in a Result.
type Contest = contest.Contest

// Reached is a Service that a Cluster returns.
type Reached = securitygroup.Reached

// CodeUpdating is the code of a resource that another client is updating.
const CodeUpdating = contest.CodeUpdating
