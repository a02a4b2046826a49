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

// Azure reads and writes Private Link Services. Errors carry a *fault.Fault. Implementations must
// be safe for concurrent use.
type Azure interface {
	Get(ctx context.Context, id lb.ResourceID) (lb.PrivateLinkService, error)
	List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error)
	// Put creates or updates a Private Link Service, waits for completion and returns the result.
	Put(ctx context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error)
	Delete(ctx context.Context, p lb.PrivateLinkService) error
	DeleteConnection(ctx context.Context, of lb.ResourceID, connection lb.PrivateEndpointConnection) error
	GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error)
	// OpenSubnet disables the network policies that block Private Link Services.
	OpenSubnet(ctx context.Context, next lb.Subnet) (lb.Subnet, error)
}

// Cluster returns data from the newest snapshot of the cluster. It does not block.
type Cluster interface {
	// Sharers returns the requests of existing Services on their frontends, by owner in lower case.
	Sharers(owners map[string]bool) map[string]privatelink.Sharer
	// Bounds returns the limits set on a Namespace.
	Bounds(namespace string) bound.Settings
}

// Config configures a [Keeper]. All fields but Lease are required.
type Config struct {
	Azure   Azure
	Cluster Cluster
	// Lease excludes other controllers during a write. Optional.
	Lease      contest.Lease
	Contests   *contest.Contests
	InProgress *contest.InProgress
	// Overtaken is called after a write conflict (412) was retried; settled is true if the retry
	// succeeded.
	Overtaken func(settled bool)
	Log       *slog.Logger
	Settings  privatelink.Settings
}

// Keeper reconciles the Private Link Services of a cluster. It is safe for concurrent use.
type Keeper struct{ cfg Config }

// New returns a [Keeper].
func New(cfg Config) *Keeper { return &Keeper{cfg} }

// Request is the request of a Service, and its outcome. It may be used for several rounds. Not safe
// for concurrent use.
type Request struct {
	// Service is "namespace/name"; Owner is the prefix of its resource names.
	Service, Owner string
	// Desired is the desired load balancer spec; nil if the Service needs none.
	Desired *service.Spec
	Asked   contest.Asked
	// Groups are resource groups that may have its Private Link Services.
	Groups []string
	// left is the number of connections remaining after the last round, by frontend id.
	left map[string]int

	Outcome
}

// Concerned reports whether the Service has or may have Private Link Services.
func (r *Request) Concerned() bool { return r.asks() || len(r.Groups) > 0 }

func (r *Request) asks() bool { return r.Desired != nil && r.Desired.Link != nil }

// Outcome is the outcome of a request.
type Outcome struct {
	// Err is why the request is not met; it carries a *fault.Fault.
	Err error
	// More is true if connections remain for another round, which may start at once.
	More bool
	// Changed is true if anything was written for the Service.
	Changed bool
	// Stays is true if something was left unchanged and may still be unwanted.
	Stays bool
	// State is the state for the Service; nil if it has and requests nothing.
	State *State
	// Events are changes; Warnings are problems that users must fix or should know.
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
	// ReasonPublished is for the owner of the Private Link Service, ReasonShared for other Services
	// on the frontend.
	ReasonPublished = "Published"
	ReasonShared    = "Shared"
	ReasonHeld      = "Held"
	ReasonWaits     = "Waits"
	ReasonFailed    = "Failed"
)

// State is the state of a Service's Private Link Service.
type State struct {
	// Reason is one of the constants; Text describes it.
	Reason, Text string
	// Alias is the alias for consumers; empty if there is none.
	Alias string
	// Connections are the private endpoint connections.
	Connections privatelink.Count
}

// Publishes reports whether the frontend is published as requested.
func (s *State) Publishes() bool {
	return s != nil && (s.Reason == ReasonPublished || s.Reason == ReasonShared)
}
