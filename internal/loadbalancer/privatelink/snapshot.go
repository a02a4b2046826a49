// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
)

// resourceGroups starts with the cluster's default.
func (c *Config) resourceGroups(requests []*Request, services map[string]desired.FrontendService) []string {
	groups := []string{c.Settings.Group.ResourceGroup}
	add := func(name string) {
		if name != "" && !slices.ContainsFunc(groups, func(have string) bool { return strings.EqualFold(have, name) }) {
			groups = append(groups, name)
		}
	}
	for _, req := range requests {
		if req.requestsLink() {
			add(req.Desired.Link.ResourceGroup)
		}
		for _, name := range req.ResourceGroups {
			add(name)
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(services)) {
		for _, name := range serviceGroups(services[owner]) {
			add(name)
		}
	}
	return groups
}

func serviceGroups(s desired.FrontendService) []string {
	if s.Link == nil {
		return s.ResourceGroups
	}
	return append(slices.Clone(s.ResourceGroups), s.Link.ResourceGroup)
}

// listLinks treats a missing group as empty.
func (c *Config) listLinks(ctx context.Context, groups []string) ([]lb.PrivateLinkService, error) {
	var items []lb.PrivateLinkService
	for _, group := range groups {
		links, err := c.Azure.List(ctx, c.Settings.Group.SubscriptionID, group)
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
			return nil, fmt.Errorf("private link services of resource group %s: %w", group, err)
		}
		items = append(items, links...)
	}
	return items, nil
}

// Snapshot caches Private Link Services by resource group, read on first use. It is not safe for
// concurrent use.
type Snapshot struct {
	reconciler *Reconciler
	lists      map[string]listResult
}

type listResult struct {
	all []lb.PrivateLinkService
	err error
}

// NewSnapshot returns an empty cache.
func (rec *Reconciler) NewSnapshot() *Snapshot { return &Snapshot{rec, map[string]listResult{}} }

func (s *Snapshot) listGroup(ctx context.Context, name string) ([]lb.PrivateLinkService, error) {
	key := strings.ToLower(name)
	result, ok := s.lists[key]
	if !ok {
		result.all, result.err = s.reconciler.cfg.listLinks(ctx, []string{name})
		s.lists[key] = result
	}
	return result.all, result.err
}

// CheckReadable returns an error for an unreadable resource group. Such a group must not be recorded: it
// would block its Service forever.
func (rec *Reconciler) CheckReadable(ctx context.Context, group string) error {
	if _, err := rec.cfg.Azure.List(ctx, rec.cfg.Settings.Group.SubscriptionID, group); err != nil {
		return fmt.Errorf("private link services of resource group %s: %w", group, err)
	}
	return nil
}

// subnetCache reads and opens each subnet once per round, while other frontends wait.
type subnetCache struct {
	azure Azure
	// slot is a lock held across requests.
	slot   chan struct{}
	cached map[string]lb.Subnet
}

func newSubnetCache(azure Azure) *subnetCache {
	return &subnetCache{azure: azure, slot: make(chan struct{}, 1), cached: map[string]lb.Subnet{}}
}

func (s *subnetCache) lock() (unlock func()) {
	s.slot <- struct{}{}
	return func() { <-s.slot }
}

func (s *subnetCache) getSubnet(ctx context.Context, id string) (lb.Subnet, error) {
	defer s.lock()()
	if known, ok := s.cached[strings.ToLower(id)]; ok {
		return known, nil
	}
	at := strings.LastIndex(id, "/subnets/")
	if at < 0 {
		return lb.Subnet{}, fmt.Errorf("%q is no subnet", id)
	}
	network, err := lb.ParseResourceID(id[:at], lb.TypeVirtualNetwork)
	if err != nil {
		return lb.Subnet{}, fmt.Errorf("subnet %s: %w", id, err)
	}
	shown, err := s.azure.GetSubnet(ctx, network, id[at+len("/subnets/"):])
	if err != nil {
		return lb.Subnet{}, fmt.Errorf("subnet %s: %w", id, err)
	}
	s.cached[strings.ToLower(id)] = shown
	return shown, nil
}

// openSubnet reports whether the policies had to be disabled.
func (s *subnetCache) openSubnet(ctx context.Context, next lb.Subnet) (opened bool, err error) {
	defer s.lock()()
	id := strings.ToLower(next.String())
	if known, ok := s.cached[id]; ok && !known.LinkPolicies {
		return false, nil
	}
	shown, err := s.azure.OpenSubnet(ctx, next)
	if err != nil {
		delete(s.cached, id)
		return false, fmt.Errorf("network policies of subnet %s: %w", next.Name, err)
	}
	s.cached[id] = shown
	return true, nil
}
