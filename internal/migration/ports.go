// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"log/slog"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
)

// Azure reads and writes what a migration is about; azure.Client, machines.Client and what reads subnets and usages are it together. Its
// errors carry a *fault.Fault. It is called from several goroutines at once.
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
	Upgrade(ctx context.Context, scaleSet lb.ResourceID, instances []string) error
	// GetSubnet and Usages are asked before a migration begins alone. The latter are of a subscription, in a region.
	GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error)
	Usages(ctx context.Context, subscription, location string) ([]migrate.Usage, error)
	// Missing returns those of some actions that the caller may not do at a scope.
	Missing(ctx context.Context, scope string, actions []string) ([]string, error)
}

// Store keeps the journal where the next process finds it, and no tenant can write.
type Store interface {
	// Read returns the journal, and what people have asked meanwhile.
	Read(ctx context.Context) (migrate.Journal, migrate.Asked, error)
	Keep(ctx context.Context, j migrate.Journal) error
	// Seal keeps next in place of kept, unless somebody asks for a stop by then, or has written another journal.
	Seal(ctx context.Context, kept, next migrate.Journal) (bool, error)
	// Undone keeps a journal of which nothing is left, and takes out what people have asked, both at once; unless
	// nobody wants it undone by then.
	Undone(ctx context.Context, j migrate.Journal) (bool, error)
	// Answered takes out what people have asked to begin: it was heard.
	Answered(ctx context.Context) error
}

// Config is what a migration works with. All fields but Lease, Again, Tell, Show, Say and Owed are needed.
type Config struct {
	Azure Azure
	Store Store
	// Services returns those that have a load balancer of the cluster's, or are to have one.
	Services func() []migrate.Service
	// Balancers are all that are the cluster's, there or not. They are in one resource group.
	Balancers []lb.LoadBalancerID
	// Home is the resource group of the nodes, and of public IPs; its Type and Name are not used.
	Home lb.ResourceID
	// Location is the region of what is made.
	Location string
	Terms    migrate.Terms
	// Begins is true if people want one. A migration that was begun comes to its end without it: what it has
	// taken apart nobody else brings back.
	Begins bool
	// Hears is true if people may ask for one where Begins is false, or where it could not start. Again ends the lead,
	// in order: the next leader begins with what was asked.
	Hears bool
	Again func()
	// Tell has people hear of the Service of this namespace and name, with an event; nil is nobody.
	Tell func(service string, warning bool, reason, text string)
	// Show keeps in the status of a Service how far its load balancer is, and writes what has changed; nil is nobody.
	Show func(ctx context.Context, service, text string) error
	// Say keeps what is said of the migration beside the journal, for who asks from elsewhere; nil is nobody.
	Say func(ctx context.Context, told migrate.Told) error
	// Owed gets the addresses that Services have to get back; nil is nobody.
	Owed *Owed
	// Lease keeps other controllers away during writes; nil is none.
	Lease contest.Lease
	Log   *slog.Logger
}
