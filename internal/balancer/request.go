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

// Request asks for the load balancers to hold what one Service wants.
type Request struct {
	// Service is its namespace and name, with a slash.
	Service string
	// Owner is the first part of the names of all that is the Service's.
	Owner string
	// Created is when the Service was created.
	Created time.Time
	// OwnPools are the names of the pools that it may have for itself.
	OwnPools []string
	// HeldPools are those of them, on any of the load balancers, that are on record as its own.
	HeldPools []lb.PoolID
	// MadePools are those of HeldPools that it has a BackendPool of Weir's for.
	MadePools []lb.PoolID
	// Desired is what it wants on On; nil if it wants nothing any more.
	Desired *service.Spec
	On      lb.LoadBalancerID
	// Leave are the other load balancers that may hold parts of it.
	Leave []lb.LoadBalancerID
	// Recorded are the names of all load balancers that may hold parts of it, those included
	// that are not the cluster's any more.
	Recorded []string
	// Spare has a request that wants something take no address away: it ends with a RemovalError
	// before it would.
	Spare bool
	// Shown are the addresses that its status shows.
	Shown []netip.Addr
	// Narrows is true if it has what it wants already, or wants only that fewer clients may connect: it is not put off.
	Narrows bool
	// Closes only closes the security group to clients whom Desired does not admit. Nothing is opened, and of Desired
	// only Access and Internal count.
	Closes bool
	// Again is what a person wrote who wants a contest to be taken up again: another one counts.
	Again string
	// Groups are the names of further resource groups that may have public IPs which were
	// made for it.
	Groups []string
	// DeleteUnused has the public IPs deleted that were made for the Service, and that it does not use.
	DeleteUnused bool
	// LinkGroups are the names of the resource groups that may have a Private Link Service of it.
	LinkGroups []string
}

// Result is what came of a request.
type Result struct {
	Request
	// Err is nil if Azure holds what the Service wants, and nothing else of it. Else it
	// carries a *fault.Fault, if Azure had a part in it.
	Err error
	// Addresses are those of the frontends that it wants, in their order.
	Addresses []netip.Addr
	// Note is what people should know although all went well; empty for nothing.
	Note string
	// Kept are pools that it needs no more, or that were the last of a load balancer, and that
	// stay for what others have put into them; also if there is an error.
	Kept []plan.Kept
	// Unused are public IPs that were made for it, that it does not use, and that stay.
	Unused []publicip.Unused
	// Contests are those about what the Service has: there Azure does not hold what it
	// wants, and Weir has left it so, or has tried again since.
	Contests []contest.Contest
	// Changed is true if something was written for the Service.
	Changed bool
	// Gone are the load balancers that were deleted meanwhile, because nothing was left on
	// them.
	Gone []lb.LoadBalancerID
	// Pools are those that it needs for now: in the place of a shared pool that is of the other kind yet,
	// that which stands in for it.
	Pools []service.Pool
	// Filling are the pools that have to be filled before the rest can be done for it: what it
	// has stays with those that it had, and it has to be asked again.
	Filling []lb.PoolID
	// Emptying are the pools that keep a load balancer which it has left, and on which nothing else is,
	// until their network interfaces have left, and shared pools that are of the other kind yet: it has to
	// be asked again then.
	Emptying []plan.Emptying
	// Awaits is true if a frontend keeps an address that the Service needs elsewhere until these pools are empty.
	Awaits bool
	// Without are those of its own pools, and of those that stand in for shared ones, that Azure was seen
	// not to have.
	Without []lb.PoolID
	// Link is what came of the Private Link Service that it asks for, or asked for. Its Err leaves all
	// else as it is.
	Link privatelinkround.Outcome
}

// Contest is what a Result tells of one.
type Contest = contest.Contest

// Reached is what a Cluster tells of a Service.
type Reached = securitygroup.Reached

// CodeUpdating is the code of what somebody is just writing.
const CodeUpdating = contest.CodeUpdating
