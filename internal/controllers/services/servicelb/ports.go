// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
)

// Cluster reads the cached cluster state without blocking, except for Exists.
type Cluster interface {
	// Service returns a Service by namespace/name; false if there is none.
	Service(name string) (Service, bool)
	// Exists reports whether the API server has a Service with this UID, without the cache.
	Exists(ctx context.Context, name, uid string) (bool, error)
	// NamespaceLabels returns the labels of a namespace. Unknown labels are an error: treating them as empty
	// would misplace the Service.
	NamespaceLabels(ctx context.Context, namespace string) (map[string]string, error)
	// AllowsGatewayLoadBalancer reports whether Services of a namespace may chain frontends to a gateway load balancer; known
	// is false before the Namespace was seen.
	AllowsGatewayLoadBalancer(namespace string, balancer lb.LoadBalancerID) (allowed, known bool)
	// PoolNames returns the names of a Service's own pools; none for the default names.
	PoolNames(s Service) []string
	// RecordedPools returns the own pools on these load balancers that are recorded as Weir's, and those of them
	// with a BackendPool made by Weir.
	RecordedPools(s Service, names []string, on []lb.LoadBalancerID) (recorded, created []lb.PoolID)
	// ProxyProtocolNeighbor returns another Service on the load balancer that has a Private Link Service with PROXY
	// protocol; empty if none.
	ProxyProtocolNeighbor(s Service) string
	// SharesAddress reports whether another Service has or requests the private address of a Service.
	SharesAddress(s Service) bool
	// NodesOf returns the node addresses behind a load balancer, or of all nodes for a Service with its own
	// pools; false if unknown.
	NodesOf(on lb.LoadBalancerID, allNodes bool) ([]netip.Addr, bool)
	HasEndpoints(name string) bool
	// EmptyPool returns the name of a pool that is empty in Azure but should have members; empty if none. Without known,
	// the pool was not read yet.
	EmptyPool(on lb.LoadBalancerID, pools []service.Pool) (name string, known bool)
	ServicesWithAddress() []string
}

// StatusStore persists what Weir knows of a Service. Missing permissions and unreachable servers are errors;
// dependent steps wait.
type StatusStore interface {
	// PersistRecord persists what Azure may hold of a Service before a request is sent. With places it adds the
	// finalizer, without any it removes it.
	PersistRecord(ctx context.Context, s Service, r Record) error
	PublishAddresses(ctx context.Context, s Service, addresses []netip.Addr) error
	// RejectPorts sets the errors of ports in a status that shows addresses, and clears the others.
	RejectPorts(ctx context.Context, s Service, ports map[service.PortRef]string) error
	// UpdateConflicts updates the conflict condition; without conflicts it is removed. If changed is set, it must be
	// written even if the informer cache shows it.
	UpdateConflicts(ctx context.Context, s Service, conflicts []conflict.Conflict, changed bool) error
	// UpdateConditions writes the changed conditions and addresses in one request.
	UpdateConditions(ctx context.Context, s Service, c StatusUpdate) error
	UpdateLink(ctx context.Context, s Service, state *privatelink.State, changed bool) error
	// RequeuePools requeues the BackendPools of a Service after Azure gained or lost its pools.
	RequeuePools(s Service)
	// MakePools creates the BackendPools of pools and returns the names of the Service's own.
	MakePools(ctx context.Context, s Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error)
	// DropPools deletes the others that Weir made for it; pools that no longer exist need no update.
	DropPools(ctx context.Context, s Service, keep []string, removed []lb.PoolID) error
	DropNodePools(ctx context.Context, id lb.LoadBalancerID) error
	// DrainPools removes the network interfaces from pools that block the deletion of a load balancer, and all
	// members from pools replaced by a conversion.
	DrainPools(ctx context.Context, pools []plan.DrainingPool) error
	DropInterimPools(ctx context.Context, removed []lb.PoolID) error
	// RecordPlan sets the dry run result on the Service's BackendPools.
	RecordPlan(ctx context.Context, s Service, text string) error
	// IsTransient reports whether an error of these methods may resolve by itself.
	IsTransient(err error) bool
}

// Errors of BackendPools and Services.
var (
	// ErrServiceGone means the Service was deleted, or is too late to keep.
	ErrServiceGone = errors.New("the Service is gone")
	// ErrPoolDeleting means an old BackendPool is still being deleted: retry.
	ErrPoolDeleting = errors.New("an earlier BackendPool of its name is still going")
	// ErrNameTaken means the Service's pool cannot be filled.
	ErrNameTaken = errors.New("it belongs to another pool, Service or nodes, and Weir needs its name: delete it")
)

// NotPlacedError means the nodes of a load balancer are not known yet.
type NotPlacedError struct{ Node, Reason string }

// Error implements error.
func (e NotPlacedError) Error() string {
	text := "its nodes are not known before all nodes are placed on load balancers, and " + e.Node + " is not"
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// EventRecorder sends events about a Service.
type EventRecorder interface {
	RecordEvent(s Service, e Event)
}

// Event is an event for the user. The recorder escapes and truncates it.
type Event struct {
	Reason  string
	Warning bool
	// Text is the message. Err is appended with Azure's code and the retry time.
	Text string
	Err  error
	// If set, the event describes the conflict instead of Text. Of is the number of conflicts.
	Conflict *conflict.Conflict
	Of       int
}

// Event reasons; the first five are those of the Kubernetes service controller.
const (
	ReasonEnsuring          = "EnsuringLoadBalancer"
	ReasonEnsured           = "EnsuredLoadBalancer"
	ReasonDeleting          = "DeletingLoadBalancer"
	ReasonDeleted           = "DeletedLoadBalancer"
	ReasonSyncFailed        = "SyncLoadBalancerFailed"
	ReasonUnknownAnnotation = "UnknownAnnotation"
	ReasonNoEffect          = "RestrictionHasNoEffect"
	ReasonPartial           = "PartiallyInvalid"
	ReasonProbesProxied     = "ProbesHaveProxyHeader"
	ReasonNotEnforced       = "SecurityGroupHasNoEffect"
	ReasonRemovalBlocked    = "LoadBalancerRemovalHeld"
	ReasonRetained          = "LoadBalancerKept"
	ReasonPoolRetained      = "BackendPoolKept"
	ReasonIPUnused          = "PublicIPUnused"
	ReasonPoolEmptying      = "BackendPoolEmptying"
	ReasonPoolFilling       = "BackendPoolFilling"
	ReasonDeferred          = "LoadBalancerDeferred"
	ReasonConflict          = "LoadBalancerContested"
	ReasonDryRun            = "DryRun"
)

// Locator selects load balancers; implemented by packages loadbalancer and dryrun.
type Locator interface {
	FindPlacement(ctx context.Context, p loadbalancer.PlacementRequest) (on string, leave []string, err error)
	ID(name string) lb.LoadBalancerID
	// CheckReadable returns nil if the public IPs of a resource group can be read.
	CheckReadable(ctx context.Context, group string) error
	// CheckLinksReadable returns nil if the Private Link Services of a resource group can be read.
	CheckLinksReadable(ctx context.Context, group string) error
}

// LoadBalancers processes requests; implemented by package loadbalancer.
type LoadBalancers interface {
	Locator
	EnsureLoadBalancer(req loadbalancer.Request)
	CheckDeferred(name string, desired *service.Spec, retryToken string, narrows bool, now time.Time) error
	RecordRejection(name string, desired *service.Spec, retryToken string, err error)
	// ForgetService drops the placement and reserved capacity of a Service that was never recorded.
	ForgetService(name, owner string)
}

// DryRunner describes what would change in Azure. request builds the request with a Locator that writes
// nothing; false if Azure holds nothing of the Service.
type DryRunner interface {
	DryRun(ctx context.Context, s Service, request func(context.Context, Locator) (loadbalancer.Request, bool, error)) (string, error)
}
