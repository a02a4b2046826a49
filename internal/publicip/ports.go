// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Azure reads and writes public IPs. Its errors carry a *fault.Fault. It is called from several
// goroutines at once.
type Azure interface {
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
}

// Config is what a Keeper works with. All fields but Lease are needed.
type Config struct {
	Azure Azure
	// Lease keeps other controllers away during a write; nil is none.
	Lease      contest.Lease
	Contests   *contest.Contests
	InProgress *contest.InProgress
	Log        *slog.Logger
	// ClusterName is in the tags and names of what is made.
	ClusterName string
	// Group is where public IPs are, unless a Service says otherwise; its Name is not used.
	Group lb.ResourceID
	// Location is the region of what is made.
	Location string
	// LoadBalancers are all that are the cluster's.
	LoadBalancers []lb.LoadBalancerID
	// Owners persists which namespaces own public IPs that Weir did not make; nil keeps them in memory.
	Owners OwnerStore
	// Grants returns the annotation grant.PublicIPAnnotation of a Namespace; nil grants nothing.
	Grants func(namespace string) string
	// RulesAt returns the rules at the frontend of a public IP, as far as they are known; nil knows none. Look has those
	// of a load balancer known.
	RulesAt func(ip lb.PublicIP) []lb.Rule
	Look    func(ctx context.Context, on lb.LoadBalancerID) error
	// Services returns a function that names the Service of a frontend; nil knows none.
	Services func() (serviceOf func(frontend string) string)
}

// serviceOf returns a function that names the Service of a frontend.
func (c *Config) serviceOf() func(frontend string) string {
	if c.Services == nil {
		return func(string) string { return "" }
	}
	return c.Services()
}

// Keeper keeps the public IPs of a cluster's Services. Its methods may be called from any
// goroutine.
type Keeper struct {
	cfg    Config
	owners owners
}

// New returns a Keeper.
func New(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, owners: owners{slot: make(chan struct{}, 1)}}
}

// foreign reports whether a public IP is another cluster's, which may have a Service of the
// same name.
func (c *Config) foreign(ip lb.PublicIP) bool {
	if of := lb.Tag(ip.Tags, service.TagCluster); of != "" && !strings.EqualFold(of, c.ClusterName) {
		return true
	}
	return ip.UsedBy != "" && !slices.ContainsFunc(c.LoadBalancers, func(id lb.LoadBalancerID) bool {
		return hasPrefixFold(ip.UsedBy, id.String()+"/")
	})
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Request is what a Service wants of public IPs in one round, or several, and what came of it.
// It is of one goroutine at a time.
type Request struct {
	// Service is its namespace and name, with a slash, and Owner the first part of the names of
	// all that is the Service's.
	Service, Owner string
	// Created is when the Service was created: of two that name the same public IP the older one gets it.
	Created time.Time
	// Desired is what it wants; nil if it wants nothing any more.
	Desired *service.Spec
	Asked   contest.Asked
	// Groups are the names of further resource groups that may have some which were made for it.
	Groups []string
	// Leaves is true if it goes from the load balancer of the round, and Moves if it is on
	// another one.
	Leaves, Moves bool
	// Lost are the resource groups of those that its frontends lost.
	Lost []lb.ResourceID
	// DeleteUnused has those deleted that were made for it and that it does not use.
	DeleteUnused bool

	// Changed is true if something was written for it.
	Changed bool
	// Err is why the round has nothing for it.
	Err error
	// keys are those of the public IPs of its frontends; empty for private ones.
	keys []string
}

// group is a resource group, without a name.
func group(id lb.ResourceID) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Type: lb.TypePublicIP}
}

// groups are the resource groups where a Service has public IPs, or may have some.
func (c *Config) groups(req *Request) []lb.ResourceID {
	all := append([]lb.ResourceID{group(c.Group)}, req.Lost...)
	for _, name := range req.Groups {
		g := group(c.Group)
		g.ResourceGroup = name
		all = append(all, g)
	}
	return append(all, groupsOf(req.Desired)...)
}

// groupsOf are the resource groups of the public IPs that a Service wants.
func groupsOf(spec *service.Spec) []lb.ResourceID {
	if spec == nil {
		return nil
	}
	var all []lb.ResourceID
	for _, f := range spec.Frontends {
		if f.PublicIP != nil {
			all = append(all, group(f.PublicIP.ID))
		}
	}
	return all
}
