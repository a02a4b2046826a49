// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"log/slog"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/skumigration/phase"
)

// Azure reads and writes the migrated resources. Errors carry a *armerror.Fault. It must be safe for
// concurrent use.
type Azure interface {
	ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error)
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
	DeleteLoadBalancer(ctx context.Context, b lb.LoadBalancer) error
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	ListInterfaces(ctx context.Context, subscription, resourceGroup string) ([]lb.NetworkInterface, error)
	PutInterface(ctx context.Context, next lb.NetworkInterface) (lb.NetworkInterface, error)
	ListScaleSets(ctx context.Context, subscription, resourceGroup string) ([]lb.ScaleSet, error)
	GetScaleSet(ctx context.Context, id lb.ResourceID) (lb.ScaleSet, error)
	PatchModel(ctx context.Context, next lb.ScaleSet) (lb.ScaleSet, error)
	ListInstances(ctx context.Context, scaleSet lb.ResourceID) ([]lb.Instance, error)
	GetInstance(ctx context.Context, scaleSet lb.ResourceID, id string) (lb.Instance, error)
	PutInstance(ctx context.Context, next lb.Instance) (lb.Instance, error)
	UpgradeInstances(ctx context.Context, scaleSet lb.ResourceID, instances []string) error
	// GetSubnet and Usages are called only before a migration.
	GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error)
	Usages(ctx context.Context, subscription, location string) ([]phase.Usage, error)
	// Missing returns the actions without permission at a scope.
	Missing(ctx context.Context, scope string, actions []string) ([]string, error)
}

// Store persists the journal where no tenant can write.
type Store interface {
	Load(ctx context.Context) (phase.Journal, phase.UserRequests, error)
	SaveJournal(ctx context.Context, j phase.Journal) error
	// SaveFinalJournal saves next unless a stop was requested, or the stored journal is not kept.
	SaveFinalJournal(ctx context.Context, kept, next phase.Journal) (bool, error)
	// CompleteUndo saves the journal and removes the requests atomically, unless the undo request was
	// withdrawn.
	CompleteUndo(ctx context.Context, j phase.Journal) (bool, error)
	// ClearStartRequest removes the start request.
	ClearStartRequest(ctx context.Context) error
}

// Config configures a Migration. Lease, Claims and all functions but Services are optional.
type Config struct {
	Azure Azure
	Store Store
	// Services returns those that have or need a load balancer of the cluster.
	Services func() []phase.Service
	// LoadBalancers exist or not, in one resource group.
	LoadBalancers []lb.LoadBalancerID
	// Home is the resource group of the nodes, PublicIPs that of public IPs; Type and Name are unused.
	Home, PublicIPs lb.ResourceID
	// Location is the region of created resources.
	Location string
	// Zones returns the zones of private frontends in a location.
	Zones   func(ctx context.Context, location string) phase.RegionZones
	Options phase.Options
	// AutoStart enables migration at startup. A started migration completes regardless: nothing else
	// restores what it has removed.
	AutoStart bool
	// AcceptRequests accepts start requests. EndLead releases leadership, so that the next leader handles
	// one.
	AcceptRequests bool
	EndLead        func()
	// RecordEvent records an event of a Service, "namespace/name".
	RecordEvent func(service string, warning bool, reason, text string)
	// UpdateStatus writes the progress to a Service's status.
	UpdateStatus func(ctx context.Context, service, text string) error
	// SaveProgress saves the progress for readers without Azure access.
	SaveProgress func(ctx context.Context, progress phase.Progress) error
	Claims       *AddressClaims
	// Lease excludes other controllers during writes.
	Lease conflict.Lease
	Log   *slog.Logger
}
