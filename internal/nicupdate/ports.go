// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"log/slog"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Azure reads and writes interfaces, scale sets and instances; machines.Client and azure.Client
// together are it. Its errors carry a *fault.Fault. It is called from several goroutines at once.
type Azure interface {
	// EnterResource asks for leave to work on a network interface, or on a scale set and its
	// instances; see poolupdate.Azure.Enter.
	EnterResource(id lb.ResourceID) (until time.Time, why string)
	ListInterfaces(ctx context.Context, subscription, resourceGroup string) ([]lb.NetworkInterface, error)
	GetInterface(ctx context.Context, id lb.ResourceID) (lb.NetworkInterface, error)
	// PrimaryInterface returns the primary interface of a virtual machine; zero if it says of none.
	PrimaryInterface(ctx context.Context, vm lb.ResourceID) (lb.ResourceID, error)
	PutInterface(ctx context.Context, next lb.NetworkInterface) (lb.NetworkInterface, error)
	ListScaleSets(ctx context.Context, subscription, resourceGroup string) ([]lb.ScaleSet, error)
	GetScaleSet(ctx context.Context, id lb.ResourceID) (lb.ScaleSet, error)
	PatchModel(ctx context.Context, next lb.ScaleSet) (lb.ScaleSet, error)
	ListInstances(ctx context.Context, scaleSet lb.ResourceID) ([]lb.Instance, error)
	GetInstance(ctx context.Context, scaleSet lb.ResourceID, id string) (lb.Instance, error)
	PutInstance(ctx context.Context, next lb.Instance) (lb.Instance, error)
	Upgrade(ctx context.Context, scaleSet lb.ResourceID, instances []string) error
}

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	// Machines are those of all nodes, with the load balancer configuration on which each is placed.
	Machines() []nic.Node
	// InterfacePools are the pools of network interfaces that a BackendPool is entitled to.
	InterfacePools() []lb.PoolID
}

// Config is what the lanes work with. All fields but Lease and Meter are needed.
type Config struct {
	Azure   Azure
	Cluster Cluster
	// Lease keeps other controllers away during a write; nil is none.
	Lease Lease
	// Home is the resource group of the nodes; its Type and Name are not used.
	Home lb.ResourceID
	// Parallel is how many resources are written at a time.
	Parallel int
	// Settled is told when nothing is under way for a pool any more, from several goroutines at once.
	Settled func(pool lb.PoolID)
	// Meter measures; nil is nobody.
	Meter Meter
	Log   *slog.Logger
}

// Meter is told what is written, and how long machines take. It is called from several goroutines at once.
type Meter interface {
	// Wrote is told of a request that writes a resource of a kind, or has Azure upgrade instances, which
	// is of nic.KindModel, too, and what became of it.
	Wrote(kind nic.Kind, err error)
	// Moved is told how long it took from when a machine was to join pools or to leave them until Azure
	// showed it so.
	Moved(took time.Duration)
}

// Lease is the lock that other controllers of the cluster take, too; see poolupdate.Lease.
type Lease interface {
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}
