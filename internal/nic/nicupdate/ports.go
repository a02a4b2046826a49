// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"log/slog"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Azure reads and writes interfaces, scale sets and instances; azure.MachineClient and azure.Client
// implement it together. Errors carry a *armerror.Fault. It must be safe for concurrent use.
type Azure interface {
	// EnterResource requests admission, see updater.Azure.Enter.
	EnterResource(id lb.ResourceID) (until time.Time, reason string)
	ListInterfaces(ctx context.Context, subscription, resourceGroup string) ([]lb.NetworkInterface, error)
	GetInterface(ctx context.Context, id lb.ResourceID) (lb.NetworkInterface, error)
	// PrimaryInterface returns zero if the virtual machine names none.
	PrimaryInterface(ctx context.Context, vm lb.ResourceID) (lb.ResourceID, error)
	PutInterface(ctx context.Context, next lb.NetworkInterface) (lb.NetworkInterface, error)
	ListScaleSets(ctx context.Context, subscription, resourceGroup string) ([]lb.ScaleSet, error)
	GetScaleSet(ctx context.Context, id lb.ResourceID) (lb.ScaleSet, error)
	PatchModel(ctx context.Context, next lb.ScaleSet) (lb.ScaleSet, error)
	ListInstances(ctx context.Context, scaleSet lb.ResourceID) ([]lb.Instance, error)
	GetInstance(ctx context.Context, scaleSet lb.ResourceID, id string) (lb.Instance, error)
	PutInstance(ctx context.Context, next lb.Instance) (lb.Instance, error)
	UpgradeInstances(ctx context.Context, scaleSet lb.ResourceID, instances []string) error
}

// Cluster reads the newest snapshot without blocking.
type Cluster interface {
	// Machines returns all nodes with their load balancer configuration.
	Machines() []nic.Node
	// InterfacePools returns the pools of network interfaces bound to a BackendPool.
	InterfacePools() []lb.PoolID
}

// Config configures an Updater. Only Lease and Metrics are optional.
type Config struct {
	Azure   Azure
	Cluster Cluster
	// Lease excludes other controllers during a write.
	Lease Lease
	// Home is the resource group of the nodes; Type and Name are unused.
	Home lb.ResourceID
	// Parallel limits concurrent writes.
	Parallel int
	// OnPoolIdle is called when a pool becomes idle, from several goroutines.
	OnPoolIdle func(pool lb.PoolID)
	Metrics    Metrics
	Log        *slog.Logger
}

// Metrics must be safe for concurrent use.
type Metrics interface {
	// ObserveWrite records a write and its error. An upgrade counts as nic.KindModel.
	ObserveWrite(kind nic.Kind, err error)
	// ObserveDuration records the time from a request until Azure showed the result.
	ObserveDuration(elapsed time.Duration)
}

// Lease is the lock shared with other controllers, see updater.Lease.
type Lease interface {
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}
