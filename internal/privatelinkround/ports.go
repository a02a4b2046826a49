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

// Azure reads and writes Private Link Services. Errors carry a *fault.Fault. It must be safe for
// concurrent use.
type Azure interface {
	Get(ctx context.Context, id lb.ResourceID) (lb.PrivateLinkService, error)
	List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error)
	// Put creates or updates, waits for completion and returns the result.
	Put(ctx context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error)
	Delete(ctx context.Context, p lb.PrivateLinkService) error
	DeleteConnection(ctx context.Context, of lb.ResourceID, connection lb.PrivateEndpointConnection) error
	GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error)
	// OpenSubnet disables the policies that block Private Link Services.
	OpenSubnet(ctx context.Context, next lb.Subnet) (lb.Subnet, error)
}

// Cluster reads the newest snapshot without blocking.
type Cluster interface {
	// Sharers returns existing Services by lower-case owner.
	Sharers(owners map[string]bool) map[string]privatelink.Sharer
	Bounds(namespace string) bound.Settings
}

// Config configures a [Keeper]. Only Lease is optional.
type Config struct {
	Azure   Azure
	Cluster Cluster
	// Lease excludes other controllers during a write.
	Lease      contest.Lease
	Contests   *contest.Contests
	InProgress *contest.InProgress
	// Overtaken is called after a write conflict (412) was retried.
	Overtaken func(settled bool)
	Log       *slog.Logger
	Settings  privatelink.Settings
}

// Keeper reconciles the Private Link Services of a cluster. It is safe for concurrent use.
type Keeper struct{ cfg Config }

// New returns a [Keeper].
func New(cfg Config) *Keeper { return &Keeper{cfg} }

// Request is the request of a Service, and its outcome over several rounds. It is not safe for
// concurrent use.
type Request struct {
	// Service is "namespace/name"; Owner prefixes its resource names.
	Service, Owner string
	// Desired is nil if the Service needs no load balancer.
	Desired *service.Spec
	Asked   contest.Asked
	// Groups may have its Private Link Services.
	Groups []string
	// left is the number of connections after the last round, by frontend id.
	left map[string]int

	Outcome
}

// Concerned reports whether the Service has or may have Private Link Services.
func (r *Request) Concerned() bool { return r.asks() || len(r.Groups) > 0 }

func (r *Request) asks() bool { return r.Desired != nil && r.Desired.Link != nil }

// Outcome is the outcome of a request.
type Outcome struct {
	// Err carries a *fault.Fault.
	Err error
	// More is true if connections remain for another round, which may start at once.
	More bool
	// Changed is true if anything was written.
	Changed bool
	// Stays is true if something unwanted may be left.
	Stays bool
	// State is nil if the Service has and requests nothing.
	State *State
	// Warnings are problems that users must fix or should know.
	Events   []Event
	Warnings []Event
}

// Event is a Kubernetes event.
type Event struct{ Reason, Text string }

// The reasons of events and states.
const (
	ReasonCreated      = "PrivateLinkServiceCreated"
	ReasonChanged      = "PrivateLinkServiceChanged"
	ReasonDeleted      = "PrivateLinkServiceDeleted"
	ReasonDisconnected = "PrivateEndpointDisconnected"
	ReasonSubnet       = "SubnetPoliciesDisabled"
	ReasonRefused      = "PrivateLinkServiceRefused"
	ReasonWarned       = "PrivateLinkServiceWarning"
)

// The reasons of states only.
const (
	// ReasonPublished is for the owner, ReasonShared for other Services on the frontend.
	ReasonPublished = "Published"
	ReasonShared    = "Shared"
	ReasonHeld      = "Held"
	ReasonWaits     = "Waits"
	ReasonFailed    = "Failed"
)

// State is the state of a Service's Private Link Service.
type State struct {
	Reason, Text string
	// Alias is for consumers; empty if there is none.
	Alias       string
	Connections privatelink.Count
}

// Publishes reports whether the frontend is published as requested.
func (s *State) Publishes() bool {
	return s != nil && (s.Reason == ReasonPublished || s.Reason == ReasonShared)
}
