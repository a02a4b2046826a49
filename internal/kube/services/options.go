// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"net/netip"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
)

// Balancers make load balancers what Services want; see balancer.Balancers.
type Balancers interface {
	// Run works until the context is done, and returns when nothing is under way any more.
	Run(ctx context.Context)
	// Ensure queues a request; Ensured hears what came of it.
	Ensure(req balancer.Request)
	Locate(ctx context.Context, p balancer.Placing) (on string, leave []string, err error)
	ID(name string) lb.LoadBalancerID
	// Names are those of all load balancers that are the cluster's.
	Names() []string
	// Reads returns nil if the public IPs of a resource group can be read.
	Reads(ctx context.Context, group string) error
	// Leftovers returns what is named in Azure as a Service's, and no Service has it.
	Leftovers(ctx context.Context) ([]balancer.Leftover, error)
	// NodePlaces returns by address on which configuration Azure showed the nodes at first.
	NodePlaces(ctx context.Context) (map[netip.Addr]string, error)
}

// Options say which Services have a load balancer of Weir's, and how it is made.
type Options struct {
	// Class is the spec.loadBalancerClass of those Services; empty means those without one.
	Class string
	// AllowRemoval lets addresses be taken away, however many.
	AllowRemoval bool
	// Settings are what load balancers are made from.
	Settings service.Settings
	// Namespace is where the BackendPools of all nodes are.
	Namespace string
	// Guarded is true if a security group says who may connect.
	Guarded bool
	// RequireEffectiveRestrictions refuses Services whose restrictions have no effect.
	RequireEffectiveRestrictions bool
	// LookAgainAfter is how often a load balancer is compared though nothing changed; 0 is
	// never.
	LookAgainAfter time.Duration
	// Several are the load balancers on which nodes and Services are placed; empty where
	// there is one, which has all of them.
	Several []service.Configuration
	// AvailabilitySet returns the name of the availability set of a node's virtual machine,
	// by its providerID; see azure.Client. It is called where a configuration has a
	// PrimaryVMSet.
	AvailabilitySet func(ctx context.Context, providerID string) (string, error)
	// Rehearse returns a rehearsal for a Service that is only to be planned.
	Rehearse func() *rehearse.Rehearsal
}
