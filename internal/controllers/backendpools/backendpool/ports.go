// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// Cluster is the current snapshot of the cluster. Its methods do not block and are safe for concurrent use.
// Do not modify what they return.
type Cluster interface {
	// Pool returns a BackendPool by name; nil if it does not exist.
	Pool(namespace, name string) *v1alpha1.BackendPool
	// PoolsOf returns the BackendPools of a Service, PoolsAt those of a pool.
	PoolsOf(service schedule.ServiceName) []*v1alpha1.BackendPool
	PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool
	// Target resolves the pool of a BackendPool.
	Target(p *v1alpha1.BackendPool) (lb.PoolID, error)
	// Service returns a Service; false if it does not exist.
	Service(name schedule.ServiceName) (Service, bool)
	// Members returns the nodes that belong in the pool, even if the BackendPool may not update it. The error is that
	// of the selector.
	Members(p *v1alpha1.BackendPool) (membership.Set, error)
	// IsNodeAddress reports whether a node has the address, including excluded nodes.
	IsNodeAddress(ip netip.Addr) bool
	// UID is that of the namespace kube-system; "" if it does not exist.
	UID() string
	// NodeAt returns the name of the node with an address; "" if none.
	NodeAt(ip netip.Addr) string
	// AddressOf returns the node address of a family for a machine.
	AddressOf(machine string, family lb.Family) (netip.Addr, bool)
	// MachineOf returns the machine of a node, or why it is unknown.
	MachineOf(node string) (nic.Machine, error)
	// ConfigurationOf returns the load balancer configuration of a BackendPool; an internal load balancer
	// uses that of its public one.
	ConfigurationOf(p *v1alpha1.BackendPool) string
}

// Service is the part of a Service that determines its pools.
type Service struct {
	UID      types.UID
	Deleting bool
	// Type is spec.type.
	Type string
	// DryRun keeps everything of the Service in Azure unchanged. HasLoadBalancer is true if Weir has a load
	// balancer for it.
	DryRun, HasLoadBalancer bool
}

// The Service types with node ports.
const (
	typeLoadBalancer = "LoadBalancer"
	typeNodePort     = "NodePort"
)

// Owner knows which BackendPools Weir creates, and for which object.
type Owner interface {
	// Permission returns the right of a BackendPool to its pool, and why it has none.
	Permission(p *v1alpha1.BackendPool, at lb.PoolID) (Permission, Rejection)
	// IsCreatedByWeir reports whether Weir provably created the BackendPool.
	IsCreatedByWeir(p *v1alpha1.BackendPool) bool
	IsLeftForeign(pool lb.PoolKey) bool // whether Weir created the pool and left it for addresses of others
	// UsesInterfaces reports whether the members are network interfaces.
	UsesInterfaces(p *v1alpha1.BackendPool) bool
	// ManagedFor returns the owner to record; "" if Weir did not create it.
	ManagedFor(p *v1alpha1.BackendPool) string
	// IsInUse reports whether the members of a deleted BackendPool must remain.
	IsInUse(p *v1alpha1.BackendPool) bool
	// HandleDeletion is called for a BackendPool that another user deleted and that is not released. The other two are
	// called for a BackendPool that Weir created and that has no pool in Azure, and after each attempt.
	HandleDeletion(p *v1alpha1.BackendPool)
	HandleMissing(p *v1alpha1.BackendPool)
	HandleAttempt(p *v1alpha1.BackendPool, r updater.Report)
	// HandleEmpty is called once the status shows that the pool lacks all its members.
	HandleEmpty(p *v1alpha1.BackendPool)
}

// Workers queue operations; see updater.Workers.
type Workers interface {
	Add(ops ...schedule.Operation)
	RemoveService(name schedule.ServiceName) int
	Drop(ref schedule.Ref)
	// Retry retries the pending operations of a BackendPool, skipping Weir's own delays.
	Retry(ref schedule.Ref)
	Forget(pool lb.PoolID)
	IsInSync(pool lb.PoolID, fingerprint uint64) bool
}

// Events records events. It does not block.
type Events interface {
	// OnPool records an event on a BackendPool, OnService on an existing Service.
	OnPool(p *v1alpha1.BackendPool, e Event)
	OnService(name schedule.ServiceName, e Event)
	// RecordRetained reports members kept up although their eviction is announced.
	RecordRetained(p *v1alpha1.BackendPool, binding Binding, set membership.Set)
	// AdminStates reports the admin states that an attempt changed.
	AdminStates(p *v1alpha1.BackendPool, binding Binding, r updater.Report, t AdminChanges)
}

// Event is a Kubernetes event. Kind is Normal or Warning.
type Event struct{ Kind, Reason, Text string }

// Event kinds.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// API is the API server. It returns ErrDeleted, ErrConflict or a transport error.
type API interface {
	// Load reads a BackendPool with a quorum read.
	Load(ctx context.Context, ref schedule.Ref) (*v1alpha1.BackendPool, error)
	// Apply replaces the status of a BackendPool at this resource version and returns the new one. It returns
	// ErrConflict if the version differs.
	Apply(ctx context.Context, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error)
	// All lists all BackendPools with quorum reads, in pages.
	All(ctx context.Context) ([]*v1alpha1.BackendPool, error)
	// SetFinalizer adds or removes Weir's finalizer and returns the stored object. It reads the object again
	// if its resource version differs from p's.
	SetFinalizer(ctx context.Context, p *v1alpha1.BackendPool, want bool) (*v1alpha1.BackendPool, error)
}

// dryRunAnnotation is the dry-run annotation of a Service, for messages.
const dryRunAnnotation = "weir.dev/dry-run"
