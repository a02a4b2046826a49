// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"context"
	"log/slog"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/service"
)

// Azure reads and writes Private Link Services. Its errors carry a *fault.Fault. It is called from
// several goroutines at once.
type Azure interface {
	Get(ctx context.Context, id lb.ResourceID) (lb.PrivateLinkService, error)
	List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error)
	// Put writes what was read, or makes what has no etag, waits until Azure is done and returns what
	// it then shows.
	Put(ctx context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error)
	Delete(ctx context.Context, p lb.PrivateLinkService) error
	DeleteConnection(ctx context.Context, of lb.ResourceID, connection lb.PrivateEndpointConnection) error
	GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error)
	// OpenSubnet turns off the network policies that keep Private Link Services out.
	OpenSubnet(ctx context.Context, next lb.Subnet) (lb.Subnet, error)
}

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	// Sharers returns what the Services of these owners ask of the frontends that they are on, by
	// owner in lower case; without those that are gone.
	Sharers(owners map[string]bool) map[string]privatelink.Sharer
	// Bounds returns the bounds that the Namespace of this name sets.
	Bounds(namespace string) bound.Settings
}

// Config is what a Keeper works with. All fields but Lease are needed.
type Config struct {
	Azure   Azure
	Cluster Cluster
	// Lease keeps other controllers away during a write; nil is none.
	Lease      contest.Lease
	Contests   *contest.Contests
	InProgress *contest.InProgress
	// Overtaken is told that a write met 412 and was tried a second time, and whether that went well.
	Overtaken func(settled bool)
	Log       *slog.Logger
	Settings  privatelink.Settings
}

// Keeper keeps the Private Link Services of a cluster. Its methods may be called from any goroutine.
type Keeper struct{ cfg Config }

// New returns a Keeper.
func New(cfg Config) *Keeper { return &Keeper{cfg} }

// Request is what a Service wants of Private Link Services in one round, or several, and what came of
// it. It is of one goroutine at a time.
type Request struct {
	// Service is its namespace and name, with a slash, and Owner the first part of the names of all
	// that is the Service's.
	Service, Owner string
	// Desired is what it wants of its load balancer; nil if it wants nothing any more.
	Desired *service.Spec
	Asked   contest.Asked
	// Groups are the names of the resource groups that may have some of it.
	Groups []string
	// left counts the connections that the last round left, by the ids of their frontends.
	left map[string]int

	Outcome
}

// Concerned reports whether there is anything to look at for a Service.
func (r *Request) Concerned() bool { return r.asks() || len(r.Groups) > 0 }

func (r *Request) asks() bool { return r.Desired != nil && r.Desired.Link != nil }

// Outcome is what came of a request.
type Outcome struct {
	// Err is why what it wants is not there; it carries a *fault.Fault.
	Err error
	// More is true if connections are left for another round, which may begin at once.
	More bool
	// Changed is true if something was written for it.
	Changed bool
	// Stays is true if something was left as it is: what is not wanted may be there yet.
	Stays bool
	// State is what the Service has; nil if it asks for nothing, and has nothing.
	State *State
	// Events are what was done, and Warnings what people have to mend, or may not expect.
	Events   []Event
	Warnings []Event
}

// Event is one thing that people are told.
type Event struct{ Reason, Text string }

// The reasons of events, and of a State.
const (
	ReasonCreated      = "PrivateLinkServiceCreated"
	ReasonChanged      = "PrivateLinkServiceChanged"
	ReasonDeleted      = "PrivateLinkServiceDeleted"
	ReasonDisconnected = "PrivateEndpointDisconnected"
	ReasonSubnet       = "SubnetPoliciesDisabled"
	ReasonRefused      = "PrivateLinkServiceRefused"
	ReasonWarned       = "PrivateLinkServiceWarning"
)

// The reasons of a State alone.
const (
	// ReasonPublished is for the Service that owns the Private Link Service, and ReasonShared for
	// the others on the frontend.
	ReasonPublished = "Published"
	ReasonShared    = "Shared"
	ReasonHeld      = "Held"
	ReasonWaits     = "Waits"
	ReasonFailed    = "Failed"
)

// State is how far a Service is with the Private Link Service that it asks for.
type State struct {
	// Reason is one of the constants, and Text says it.
	Reason, Text string
	// Alias is what consumers ask for it by; empty if there is none.
	Alias string
	// Connections are those of private endpoints.
	Connections privatelink.Count
}

// Publishes reports whether the frontend has the Private Link Service.
func (s *State) Publishes() bool {
	return s != nil && (s.Reason == ReasonPublished || s.Reason == ReasonShared)
}
