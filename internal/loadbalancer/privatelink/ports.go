// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"context"
	"log/slog"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

// Azure reads and writes Private Link Services. Errors carry a *armerror.Fault. It must be safe for
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
	// FrontendServices returns existing Services by lower-case owner.
	FrontendServices(owners map[string]bool) map[string]desired.FrontendService
	NamespaceBounds(namespace string) service.NamespaceSettings
}

// Config configures a [Reconciler]. Only Lease is optional.
type Config struct {
	Azure   Azure
	Cluster Cluster
	// Lease excludes other controllers during a write.
	Lease      conflict.Lease
	Conflicts  *conflict.Conflicts
	InProgress *conflict.InProgress
	// OnConflict is called after a write conflict (412) was retried.
	OnConflict func(settled bool)
	Log        *slog.Logger
	Settings   desired.Settings
}

// Reconciler reconciles the Private Link Services of a cluster. It is safe for concurrent use.
type Reconciler struct {
	cfg      Config
	observed *observedLinks
}

// New returns a [Reconciler].
func New(cfg Config) *Reconciler {
	observed := &observedLinks{Azure: cfg.Azure, byID: map[string]lb.PrivateLinkService{}}
	cfg.Azure = observed
	return &Reconciler{cfg, observed}
}

// Request is the request of a Service, and its outcome over several rounds. It is not safe for
// concurrent use.
type Request struct {
	// Service is "namespace/name"; Owner prefixes its resource names.
	Service, Owner string
	// Desired is nil if the Service needs no load balancer.
	Desired    *service.Spec
	DesiredKey conflict.DesiredKey
	// ResourceGroups may have its Private Link Services.
	ResourceGroups []string
	// remaining is the number of connections after the last round, by frontend id.
	remaining map[string]int

	Result
}

// MayHaveLinks reports whether the Service has or may have Private Link Services.
func (r *Request) MayHaveLinks() bool { return r.requestsLink() || len(r.ResourceGroups) > 0 }

func (r *Request) requestsLink() bool { return r.Desired != nil && r.Desired.Link != nil }

// Result is the outcome of a request.
type Result struct {
	// Err carries a *armerror.Fault.
	Err error
	// HasMore is true if connections remain for another round, which may start at once.
	HasMore bool
	// Changed is true if anything was written.
	Changed bool
	// IsIncomplete is true if something unwanted may be left.
	IsIncomplete bool
	// State is nil if the Service has and requests nothing.
	State  *State
	Events []Event
	// Warnings are problems that users must fix or should know.
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
	ReasonRejected     = "PrivateLinkServiceRefused"
	ReasonWarning      = "PrivateLinkServiceWarning"
)

// The reasons of states only.
const (
	// ReasonPublished is for the owner, ReasonShared for other Services on the frontend.
	ReasonPublished = "Published"
	ReasonShared    = "Shared"
	ReasonFrozen    = "Held"
	ReasonWaiting   = "Waits"
	ReasonFailed    = "Failed"
)

// State is the state of a Service's Private Link Service.
type State struct {
	Reason, Text string
	// Alias is for consumers; empty if there is none.
	Alias       string
	Connections desired.Count
}

// IsPublished reports whether the frontend is published as requested.
func (s *State) IsPublished() bool {
	return s != nil && (s.Reason == ReasonPublished || s.Reason == ReasonShared)
}
