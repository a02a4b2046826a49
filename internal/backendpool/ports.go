// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
)

// Cluster is the newest snapshot of the cluster. It answers without waiting, and nothing that it
// returns is changed. It is asked from any goroutine.
type Cluster interface {
	// Pool returns the BackendPool of a name; nil if there is none.
	Pool(namespace, name string) *v1alpha1.BackendPool
	// PoolsOf returns those that refer to a Service, PoolsAt those that name a pool.
	PoolsOf(service poolschedule.ServiceName) []*v1alpha1.BackendPool
	PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool
	// Target resolves which pool a BackendPool means.
	Target(p *v1alpha1.BackendPool) (lb.PoolID, error)
	// Service returns what decides about the pools of a Service; false if there is none.
	Service(name poolschedule.ServiceName) (Service, bool)
	// Members returns which nodes belong in the pool, whatever the BackendPool is entitled to.
	// The error is that of its selector.
	Members(p *v1alpha1.BackendPool) (membership.Set, error)
	// OfThisCluster reports whether a node has the address, excluded ones included.
	OfThisCluster(ip netip.Addr) bool
	// NodeAt names the node that has an address; empty if none has.
	NodeAt(ip netip.Addr) string
	// AddressOf returns the address of a family that the node has which runs on a machine.
	AddressOf(machine string, family lb.Family) (netip.Addr, bool)
	// MachineOf returns the machine that the node of a name runs on, or why it is not known.
	MachineOf(node string) (nic.Machine, error)
	// ConfigurationOf names the load balancer configuration of a BackendPool; an internal load
	// balancer has that of its twin.
	ConfigurationOf(p *v1alpha1.BackendPool) string
}

// Service is what decides about the pools of a Service.
type Service struct {
	UID      types.UID
	Deleting bool
	// Type is that of its spec.
	Type string
	// DryRun is true if all that it has in Azure stays as it is, HasLoadBalancer if Weir has
	// one for it.
	DryRun, HasLoadBalancer bool
}

// The types of Services that have node ports.
const (
	typeLoadBalancer = "LoadBalancer"
	typeNodePort     = "NodePort"
)

// Owner knows which BackendPools Weir makes, and for whom.
type Owner interface {
	// Right says which right a BackendPool has to its pool, and why it has none.
	Right(p *v1alpha1.BackendPool, at lb.PoolID) (Right, Refusal)
	// Made reports whether a BackendPool is provably one that Weir made.
	Made(p *v1alpha1.BackendPool) bool
	LeftToOthers(pool lb.PoolKey) bool // whether Weir made a pool, and left it to the addresses of others
	// ByMachine reports whether the members of a pool are to be network interfaces.
	ByMachine(p *v1alpha1.BackendPool) bool
	// MadeFor is what to record of for whom Weir made it; empty if it did not.
	MadeFor(p *v1alpha1.BackendPool) string
	// Needed reports whether the members of one that is deleted stay where they are.
	Needed(p *v1alpha1.BackendPool) bool
	// Goes tells of a BackendPool that is being deleted, not released and not deleted by Weir,
	// Missing of one that Weir made and whose pool Azure does not have, Filled of what became of
	// an attempt.
	Goes(p *v1alpha1.BackendPool)
	Missing(p *v1alpha1.BackendPool)
	Filled(p *v1alpha1.BackendPool, r poolupdate.Report)
}

// Lanes are what operations are handed to; see poolupdate.Lanes.
type Lanes interface {
	Add(ops ...poolschedule.Operation)
	RemoveService(name poolschedule.ServiceName) int
	Drop(ref poolschedule.Ref)
	// Retry has what waits for a BackendPool tried without our own waiting.
	Retry(ref poolschedule.Ref)
	Forget(pool lb.PoolID)
	LevelAs(pool lb.PoolID, fingerprint uint64) bool
}

// Events tells people. It waits for nobody.
type Events interface {
	// OnPool puts an event on a BackendPool, OnService on a Service that is there.
	OnPool(p *v1alpha1.BackendPool, e Event)
	OnService(name poolschedule.ServiceName, e Event)
	// Spares tells that members begin to stay up though their eviction is announced.
	Spares(p *v1alpha1.BackendPool, is Entitlement, set membership.Set)
	// AdminStates tells what an attempt did to admin states.
	AdminStates(p *v1alpha1.BackendPool, is Entitlement, r poolupdate.Report, t Turned)
}

// Event is one that is put on an object. Kind is Normal or Warning.
type Event struct{ Kind, Reason, Text string }

// The kinds of events.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// API is the API server. Its errors are ErrGone, ErrConflict or what went wrong on the way.
type API interface {
	// Load reads a BackendPool with a quorum read.
	Load(ctx context.Context, ref poolschedule.Ref) (*v1alpha1.BackendPool, error)
	// Apply replaces the status of a BackendPool that has this resource version, and returns
	// the new one. ErrConflict says that it has another.
	Apply(ctx context.Context, ref poolschedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error)
	// All reads all BackendPools with quorum reads, as many at a time as is usual.
	All(ctx context.Context) ([]*v1alpha1.BackendPool, error)
	// SetFinalizer adds Weir's finalizer to a BackendPool, or removes it, and returns what the API
	// server then holds. If that holds another resource version than p has, it is read again.
	SetFinalizer(ctx context.Context, p *v1alpha1.BackendPool, want bool) (*v1alpha1.BackendPool, error)
}

var (
	// ErrGone says that a BackendPool is not there any more, or is another of its name.
	ErrGone = errors.New("the BackendPool is gone")
	// ErrConflict says that an object has another resource version.
	ErrConflict = errors.New("the object has changed")
)

// dryRunAnnotation is the one that people read of, on a Service with DryRun.
const dryRunAnnotation = "weir.dev/dry-run"
