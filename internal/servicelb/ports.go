// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/service"
)

// Cluster reads the cached cluster state without blocking.
type Cluster interface {
	// Service returns a Service by namespace/name; false if there is none.
	Service(name string) (Service, bool)
	// NamespaceLabels returns the labels of a namespace. Unknown labels are an error: treating them as empty
	// would misplace the Service.
	NamespaceLabels(ctx context.Context, namespace string) (map[string]string, error)
	// PoolNames returns the names of a Service's own pools; none for the default names.
	PoolNames(s Service) []string
	// HeldPools returns the own pools on these load balancers that are recorded as Weir's, and those of them
	// with a BackendPool made by Weir.
	HeldPools(s Service, names []string, on []lb.LoadBalancerID) (held, made []lb.PoolID)
	// ProxiedBeside returns another Service on the load balancer that has a Private Link Service with PROXY
	// protocol; empty if none.
	ProxiedBeside(s Service) string
	// SharesAddress reports whether another Service has or requests the private address of a Service.
	SharesAddress(s Service) bool
	// NodesOf returns the node addresses behind a load balancer, or of all nodes for a Service with its own
	// pools; false if unknown.
	NodesOf(on lb.LoadBalancerID, anywhere bool) ([]netip.Addr, bool)
	HasEndpoints(name string) bool
	// EmptyPool returns the name of a pool that is empty in Azure but should have members; empty if none.
	EmptyPool(on lb.LoadBalancerID, pools []service.Pool) string
	Addressed() []string
}

// Ledger persists what Weir knows of a Service. Missing permissions and unreachable servers are errors;
// dependent steps wait.
type Ledger interface {
	// Record persists what Azure may hold of a Service before a request is sent. With places it adds the
	// finalizer, without any it removes it.
	Record(ctx context.Context, s Service, r Record) error
	Publish(ctx context.Context, s Service, addresses []netip.Addr) error
	// RefusePorts sets the errors of ports in a status that shows addresses, and clears the others.
	RefusePorts(ctx context.Context, s Service, ports map[service.PortRef]string) error
	// Contested updates the conflict condition; without conflicts it is removed. If changed is set, it must be
	// written even if the informer cache shows it.
	Contested(ctx context.Context, s Service, contests []contest.Contest, changed bool) error
	// Conclude writes the changed conditions and addresses in one request.
	Conclude(ctx context.Context, s Service, c Conclusion) error
	Linked(ctx context.Context, s Service, state *privatelinkround.State, changed bool) error
	// Served requeues the BackendPools of a Service after Azure gained or lost its pools.
	Served(s Service)
	// MakePools creates the BackendPools of pools and returns the names of the Service's own.
	MakePools(ctx context.Context, s Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error)
	// DropPools deletes the others that Weir made for it; pools that no longer exist need no update.
	DropPools(ctx context.Context, s Service, keep []string, gone []lb.PoolID) error
	DropNodePools(ctx context.Context, id lb.LoadBalancerID) error
	// EmptyPools removes the network interfaces from pools that block the deletion of a load balancer, and all
	// members from pools replaced by a conversion.
	EmptyPools(ctx context.Context, pools []plan.Emptying) error
	DropInterim(ctx context.Context, gone []lb.PoolID) error
	// Planned sets the dry run result on the Service's BackendPools.
	Planned(ctx context.Context, s Service, text string) error
	// Passes reports whether an error of these methods may resolve by itself.
	Passes(err error) bool
}

// Errors of BackendPools and Services.
var (
	// ErrGone means the Service was deleted, or is too late to keep.
	ErrGone = errors.New("the Service is gone")
	// ErrStillGoing means an old BackendPool is still being deleted: retry.
	ErrStillGoing = errors.New("an earlier BackendPool of its name is still going")
	// ErrNameTaken means the Service's pool cannot be filled.
	ErrNameTaken = errors.New("somebody made it for another pool, Service or nodes, and Weir needs the name for one of its own: delete it")
)

// NotPlacedError means the nodes of a load balancer are not known yet.
type NotPlacedError struct{ Node, Why string }

// Error implements error.
func (e NotPlacedError) Error() string {
	text := "its nodes are not known before all nodes are placed on load balancers, and " + e.Node + " is not"
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Reporter sends events about a Service.
type Reporter interface {
	Tell(s Service, e Event)
}

// Event is an event for the user. The recorder escapes and truncates it.
type Event struct {
	Reason  string
	Warning bool
	// Text is the message. Err is appended with Azure's code and the retry time.
	Text string
	Err  error
	// If set, the event describes the conflict instead of Text. Of is the number of conflicts.
	Contest *contest.Contest
	Of      int
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
	ReasonNotGuarded        = "SecurityGroupHasNoEffect"
	ReasonRemovalHeld       = "LoadBalancerRemovalHeld"
	ReasonKept              = "LoadBalancerKept"
	ReasonPoolKept          = "BackendPoolKept"
	ReasonIPUnused          = "PublicIPUnused"
	ReasonPoolEmptying      = "BackendPoolEmptying"
	ReasonPoolFilling       = "BackendPoolFilling"
	ReasonDeferred          = "LoadBalancerDeferred"
	ReasonContested         = "LoadBalancerContested"
	ReasonDryRun            = "DryRun"
)

// Locator selects load balancers; implemented by packages balancer and rehearse.
type Locator interface {
	Locate(ctx context.Context, p balancer.Placing) (on string, leave []string, err error)
	ID(name string) lb.LoadBalancerID
	// Reads returns nil if the public IPs of a resource group can be read.
	Reads(ctx context.Context, group string) error
	// ReadsLinks returns nil if the Private Link Services of a resource group can be read.
	ReadsLinks(ctx context.Context, group string) error
}

// Balancers processes requests; implemented by package balancer.
type Balancers interface {
	Locator
	Ensure(req balancer.Request)
	Defer(name string, desired *service.Spec, narrows bool, now time.Time) error
	Reject(name string, desired *service.Spec, err error)
	// Forget drops the placement and reserved capacity of a Service that was never recorded.
	Forget(name, owner string)
}

// Rehearser describes what would change in Azure. request builds the request with a Locator that writes
// nothing; false if Azure holds nothing of the Service.
type Rehearser interface {
	Rehearse(ctx context.Context, s Service, request func(context.Context, Locator) (balancer.Request, bool, error)) (string, error)
}
