// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/zones"
)

// Azure reads and writes public IPs. Errors carry a *armerror.Fault. Implementations are safe for concurrent use.
type Azure interface {
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
}

// Config holds dependencies and settings. Only Lease is optional.
type Config struct {
	Azure Azure
	// Lease keeps other controllers away during a write; nil means none.
	Lease      conflict.Lease
	Conflicts  *conflict.Conflicts
	InProgress *conflict.InProgress
	Log        *slog.Logger
	// ClusterName is part of the tags and names of new public IPs.
	ClusterName string
	// Group is the default resource group; its Name is not used.
	Group    lb.ResourceID
	Location string
	// EdgeZoneOf returns the edge zone of a load balancer, where its new public IPs are made; empty for none. Nil knows
	// none.
	EdgeZoneOf func(ctx context.Context, on lb.LoadBalancerID) (string, error)
	// Zones are the zones of the regions; nil knows none. DefaultZones are those of new public IPs of Services that
	// name none.
	Zones         *zones.Regions
	DefaultZones  zones.Choice
	LoadBalancers []lb.LoadBalancerID
	// Owners persists which namespaces own public IPs that Weir did not make; nil keeps them in memory.
	Owners OwnerStore
	// Groups persists the other resource groups in which Weir creates public IPs; nil keeps them in memory.
	Groups GroupStore
	// GrantsOf returns the annotation service.PublicIPAnnotation of a Namespace; nil grants nothing.
	GrantsOf func(namespace string) string
	// RulesAt returns the cached rules at the frontend of a public IP; nil knows none.
	RulesAt func(ip lb.PublicIP) []lb.Rule
	// ReadRules reads a load balancer into that cache.
	ReadRules func(ctx context.Context, on lb.LoadBalancerID) error
	// Services returns a function that names the Service of a frontend; nil knows none.
	Services func() (serviceOf func(frontend string) string)
}

func (c *Config) serviceOf() func(frontend string) string {
	if c.Services == nil {
		return func(string) string { return "" }
	}
	return c.Services()
}

// Manager manages the public IPs of a cluster's Services. Its methods are safe for concurrent use.
type Manager struct {
	cfg    Config
	owners owners
	groups groups
}

// New returns an instance without cached owners.
func New(cfg Config) *Manager {
	return &Manager{cfg: cfg, owners: owners{slot: make(chan struct{}, 1)}, groups: newGroups()}
}

// isForeign reports whether a public IP belongs to another cluster, which may have a Service of the same name.
func (c *Config) isForeign(ip lb.PublicIP) bool {
	if of := lb.TagValue(ip.Tags, service.TagCluster); of != "" && !strings.EqualFold(of, c.ClusterName) {
		return true
	}
	return ip.UsedBy != "" && !slices.ContainsFunc(c.LoadBalancers, func(id lb.LoadBalancerID) bool {
		return hasPrefixFold(ip.UsedBy, id.String()+"/")
	})
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Request is what a Service wants of public IPs, and the result. It is used for one or more rounds. Not safe
// for concurrent use.
type Request struct {
	// Service is namespace/name. Owner is the prefix of the names of its Azure resources.
	Service, Owner string
	// Created is when the Service was created: the older of two Services that name a public IP gets it.
	Created    time.Time
	Desired    *service.Spec
	DesiredKey conflict.DesiredKey
	// Groups are additional resource groups that may hold public IPs made for the Service.
	Groups []string
	// IsLeaving is true once the Service leaves its last load balancer. IsMoving is true while it is on another one, too,
	// before or after this step: UsedBy may then name its own frontend.
	IsLeaving, IsMoving bool
	LostGroups          []lb.ResourceID
	// DeleteUnused deletes unused public IPs that were made for the Service.
	DeleteUnused bool
	// Retain keeps the public IPs made for the Service when it leaves them.
	Retain bool

	Changed bool
	Err     error
	// keys are the public IPs of its frontends; empty for private ones.
	keys []string
}

func resourceGroup(id lb.ResourceID) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Type: lb.TypePublicIP}
}

func (c *Config) requestGroups(req *Request) []lb.ResourceID {
	groups := append([]lb.ResourceID{resourceGroup(c.Group)}, req.LostGroups...)
	for _, name := range req.Groups {
		g := resourceGroup(c.Group)
		g.ResourceGroup = name
		groups = append(groups, g)
	}
	return append(groups, groupsOf(req.Desired)...)
}

func groupsOf(spec *service.Spec) []lb.ResourceID {
	if spec == nil {
		return nil
	}
	var ids []lb.ResourceID
	for _, f := range spec.Frontends {
		if f.PublicIP != nil {
			ids = append(ids, resourceGroup(f.PublicIP.ID))
		}
	}
	return ids
}
