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

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	// Service returns a Service by namespace and name, with a slash; false if there is none.
	Service(name string) (Service, bool)
	// NamespaceLabels returns the labels of a namespace. That they are not known yet is an
	// error: to take that for no labels would put a Service where it does not belong.
	NamespaceLabels(ctx context.Context, namespace string) (map[string]string, error)
	// PoolNames returns the names of the pools that a Service has for itself; none if they are
	// the usual ones.
	PoolNames(s Service) []string
	// HeldPools returns those of a Service's own pools, on these load balancers, that are on
	// record as Weir's, and those of them that it has a BackendPool of Weir's for.
	HeldPools(s Service, names []string, on []lb.LoadBalancerID) (held, made []lb.PoolID)
	// ProxiedBeside returns a Service on the load balancer of another one that has a Private Link Service with the
	// PROXY protocol in front; empty if there is none.
	ProxiedBeside(s Service) string
	// SharesAddress reports whether another Service has the private address of a Service, or asks for it.
	SharesAddress(s Service) bool
	// NodesOf returns the addresses of the nodes behind a load balancer, or, of a Service with pools of
	// its own, anywhere; false if they are not known yet.
	NodesOf(on lb.LoadBalancerID, anywhere bool) ([]netip.Addr, bool)
	// HasEndpoints reports whether anything takes the traffic of a Service.
	HasEndpoints(name string) bool
	// EmptyPool returns the name of one of these pools that is empty in Azure though members are to be in it; empty if there
	// is none.
	EmptyPool(on lb.LoadBalancerID, pools []service.Pool) string
	// Addressed returns the Services of Weir's whose status shows an address.
	Addressed() []string
}

// Ledger keeps, durably, what Weir knows of a Service. What it has no rights to, or cannot reach, is
// an error, and what rests on it waits.
type Ledger interface {
	// Record writes down what Azure may hold of a Service before it is asked for, and keeps the
	// Service as long as there are places; without any it lets go of it.
	Record(ctx context.Context, s Service, r Record) error
	// Publish writes the addresses into the status, if they are others.
	Publish(ctx context.Context, s Service, addresses []netip.Addr) error
	// RefusePorts says in the status what is wrong with ports, where it shows addresses;
	// of none it is taken back.
	RefusePorts(ctx context.Context, s Service, ports map[service.PortRef]string) error
	// Contested keeps the condition that speaks of these; without any it goes. For anew see Conclusion.
	Contested(ctx context.Context, s Service, contests []contest.Contest, anew bool) error
	// Conclude keeps what a look has come to, and writes what has changed, in one request.
	Conclude(ctx context.Context, s Service, c Conclusion) error
	// Linked keeps the condition that says how the Service is published; nil is none. For anew see Conclusion.
	Linked(ctx context.Context, s Service, state *privatelinkround.State, anew bool) error
	// Served has the BackendPools of a Service looked at again, after Azure has begun or ceased
	// to hold pools for it.
	Served(s Service)
	// MakePools makes the BackendPools of these pools, and returns the names of those that are
	// the Service's own. DropPools deletes those that Weir made for it, but for some; of pools
	// that are gone nothing has to be taken out.
	MakePools(ctx context.Context, s Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error)
	DropPools(ctx context.Context, s Service, keep []string, gone []lb.PoolID) error
	// DropNodePools deletes the BackendPools of the nodes of a load balancer that is no more.
	DropNodePools(ctx context.Context, id lb.LoadBalancerID) error
	// EmptyPools has the network interfaces leave pools of nodes that keep a load balancer on which
	// nothing else is, and all members those of the other kind that no rule needs any more.
	// States.Emptied hears that a BackendPool of them has gone. DropInterim deletes the BackendPools of
	// pools that stood in for others, and are gone.
	EmptyPools(ctx context.Context, pools []plan.Emptying) error
	DropInterim(ctx context.Context, gone []lb.PoolID) error
	// Planned puts what would change on the BackendPools that Weir made for a Service.
	Planned(ctx context.Context, s Service, text string) error
	// Passes reports whether an error of these methods may pass by itself.
	Passes(err error) bool
}

// What the Ledger says of BackendPools and Services.
var (
	// ErrGone says that the Service is not there any more, or too late to keep it.
	ErrGone = errors.New("the Service is gone")
	// ErrStillGoing asks for a little patience.
	ErrStillGoing = errors.New("an earlier BackendPool of its name is still going")
	// ErrNameTaken says that the Service's pool cannot be filled.
	ErrNameTaken = errors.New("somebody made it for another pool, Service or nodes, and Weir needs the name for one of its own: delete it")
)

// NotPlacedError says that the nodes of a load balancer are not known yet.
type NotPlacedError struct{ Node, Why string }

// Error implements error.
func (e NotPlacedError) Error() string {
	text := "its nodes are not known before all nodes are placed on load balancers, and " + e.Node + " is not"
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Reporter tells people what becomes of a Service.
type Reporter interface {
	Tell(s Service, e Event)
}

// Event is one thing that people are told. Whoever shows it escapes and bounds it.
type Event struct {
	Reason  string
	Warning bool
	// Text says it; Err follows, with Azure's code and when it is tried again.
	Text string
	Err  error
	// Contest is told in the place of Text, where there is one, of so many.
	Contest *contest.Contest
	Of      int
}

// Reasons of the events: the first five are those of Kubernetes' own service controller.
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

// Locator says where a Service belongs; balancer.Balancers and balancer.Rehearsal are these.
type Locator interface {
	Locate(ctx context.Context, p balancer.Placing) (on string, leave []string, err error)
	ID(name string) lb.LoadBalancerID
	// Reads returns nil if the public IPs of a resource group can be read.
	Reads(ctx context.Context, group string) error
	// ReadsLinks returns nil if the Private Link Services of a resource group can be read.
	ReadsLinks(ctx context.Context, group string) error
}

// Balancers bring load balancers level; see balancer.Balancers. Reconciler.Ensured hears what came
// of a request.
type Balancers interface {
	Locator
	Ensure(req balancer.Request)
	// Defer returns why no request for a Service is sent to Azure before a time; see balancer.Balancers.
	Defer(name string, desired *service.Spec, narrows bool, now time.Time) error
	// Reject counts a read that failed because of what the Service names.
	Reject(name string, desired *service.Spec, err error)
	// Forget drops the place and the room that a Service had before anything of it was recorded.
	Forget(name, owner string)
}

// Rehearser says in a few words what would change in Azure. request makes what has to be asked of
// a Locator that writes nothing; false if Azure holds nothing of the Service.
type Rehearser interface {
	Rehearse(ctx context.Context, s Service, request func(context.Context, Locator) (balancer.Request, bool, error)) (string, error)
}
