// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
)

// groups starts with the cluster's default.
func (c *Config) groups(requests []*Request, services map[string]privatelink.Sharer) []string {
	all := []string{c.Settings.Group.ResourceGroup}
	add := func(name string) {
		if name != "" && !slices.ContainsFunc(all, func(have string) bool { return strings.EqualFold(have, name) }) {
			all = append(all, name)
		}
	}
	for _, req := range requests {
		if req.asks() {
			add(req.Desired.Link.ResourceGroup)
		}
		for _, name := range req.Groups {
			add(name)
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(services)) {
		for _, name := range sharerGroups(services[owner]) {
			add(name)
		}
	}
	return all
}

func sharerGroups(s privatelink.Sharer) []string {
	if s.Link == nil {
		return s.Groups
	}
	return append(slices.Clone(s.Groups), s.Link.ResourceGroup)
}

// read treats a missing group as empty.
func (c *Config) read(ctx context.Context, groups []string) ([]lb.PrivateLinkService, error) {
	var all []lb.PrivateLinkService
	for _, group := range groups {
		links, err := c.Azure.List(ctx, c.Settings.Group.SubscriptionID, group)
		if f := fault.From(err); f != nil && f.Class != fault.Stale {
			return nil, fmt.Errorf("private link services of resource group %s: %w", group, err)
		}
		all = append(all, links...)
	}
	return all, nil
}

// Look caches Private Link Services by resource group, read on first use. It is not safe for
// concurrent use.
type Look struct {
	of    *Keeper
	known map[string]listed
}

type listed struct {
	all []lb.PrivateLinkService
	err error
}

// Look returns an empty cache.
func (k *Keeper) Look() *Look { return &Look{k, map[string]listed{}} }

func (l *Look) group(ctx context.Context, name string) ([]lb.PrivateLinkService, error) {
	key := strings.ToLower(name)
	is, ok := l.known[key]
	if !ok {
		is.all, is.err = l.of.cfg.read(ctx, []string{name})
		l.known[key] = is
	}
	return is.all, is.err
}

// Reads returns an error for an unreadable resource group. Such a group must not be recorded: it
// would block its Service forever.
func (k *Keeper) Reads(ctx context.Context, group string) error {
	if _, err := k.cfg.Azure.List(ctx, k.cfg.Settings.Group.SubscriptionID, group); err != nil {
		return fmt.Errorf("private link services of resource group %s: %w", group, err)
	}
	return nil
}

// subnets reads and opens each subnet once per round, while other frontends wait.
type subnets struct {
	azure Azure
	// slot is a lock held across requests.
	slot  chan struct{}
	known map[string]lb.Subnet
}

func newSubnets(azure Azure) *subnets {
	return &subnets{azure: azure, slot: make(chan struct{}, 1), known: map[string]lb.Subnet{}}
}

func (s *subnets) lock() (unlock func()) {
	s.slot <- struct{}{}
	return func() { <-s.slot }
}

func (s *subnets) get(ctx context.Context, id string) (lb.Subnet, error) {
	defer s.lock()()
	if known, ok := s.known[strings.ToLower(id)]; ok {
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
	s.known[strings.ToLower(id)] = shown
	return shown, nil
}

// open reports whether the policies had to be disabled.
func (s *subnets) open(ctx context.Context, next lb.Subnet) (did bool, err error) {
	defer s.lock()()
	id := strings.ToLower(next.String())
	if known, ok := s.known[id]; ok && !known.LinkPolicies {
		return false, nil
	}
	shown, err := s.azure.OpenSubnet(ctx, next)
	if err != nil {
		delete(s.known, id)
		return false, fmt.Errorf("network policies of subnet %s: %w", next.Name, err)
	}
	s.known[id] = shown
	return true, nil
}
