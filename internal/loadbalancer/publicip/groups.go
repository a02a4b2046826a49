// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// GroupStore persists the other resource groups in which Weir creates public IPs. Without the record, a public IP there is
// not found once its Service is deleted. Only the leader writes.
type GroupStore interface {
	ReadGroups(ctx context.Context) ([]string, error)
	// ChangeGroups adds and removes groups.
	ChangeGroups(ctx context.Context, add, remove []string) error
}

// groupTTL is how long a group without public IPs remains on record after a write there, which may not have landed.
const groupTTL = time.Hour

// groups caches the record. Its methods are safe for concurrent use.
type groups struct {
	slot chan struct{} // lock for the fields below, held across API calls
	// names are in lower case; nil until read. writtenAt is when this process last wrote there.
	names     map[string]bool
	writtenAt map[string]time.Time
	// unreadable are the groups that could not be read, to log each once.
	unreadable map[string]bool
}

func newGroups() groups {
	return groups{slot: make(chan struct{}, 1), writtenAt: map[string]time.Time{}, unreadable: map[string]bool{}}
}

// load reads the record unless it is cached. The caller holds the slot.
func (g *groups) load(ctx context.Context, store GroupStore) error {
	if g.names != nil {
		return nil
	}
	names := map[string]bool{}
	if store != nil {
		ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
		defer cancel()
		groups, err := store.ReadGroups(ctx)
		if err != nil {
			return fmt.Errorf("the record of resource groups of public IPs cannot be read: %w", err)
		}
		for _, name := range groups {
			names[strings.ToLower(name)] = true
		}
	}
	g.names = names
	return nil
}

// change adds and removes groups. The caller holds the slot.
func (g *groups) change(ctx context.Context, store GroupStore, add, remove []string) error {
	if err := g.load(ctx, store); err != nil {
		return err
	}
	add = slices.DeleteFunc(slices.Clone(add), func(name string) bool { return g.names[name] })
	if len(add)+len(remove) == 0 {
		return nil
	}
	if store != nil {
		ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
		defer cancel()
		if err := store.ChangeGroups(ctx, add, remove); err != nil {
			g.names = nil // the write may have succeeded
			return fmt.Errorf("the record of resource groups of public IPs cannot be written: %w", err)
		}
	}
	for _, name := range add {
		g.names[name] = true
	}
	for _, name := range remove {
		delete(g.names, name)
	}
	return nil
}

// otherGroup returns the lower-case resource group of a public IP that Weir makes or made, if it is not the default one.
func (c *Config) otherGroup(ip lb.PublicIP) string {
	if ManagedOwner(ip, c.ClusterName) == "" || strings.EqualFold(ip.ID.ResourceGroup, c.Group.ResourceGroup) {
		return ""
	}
	return strings.ToLower(ip.ID.ResourceGroup)
}

// recordGroups persists the other groups of these writes, before they are sent. It returns those that are not on record.
func (m *Manager) recordGroups(ctx context.Context, writes []*write) (unrecorded []string, err error) {
	names := map[string]bool{}
	for _, w := range writes {
		if name := m.cfg.otherGroup(w.next); name != "" && !w.isDelete {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	m.groups.slot <- struct{}{}
	defer func() { <-m.groups.slot }()
	add := slices.Sorted(maps.Keys(names))
	if err = m.groups.load(ctx, m.cfg.Groups); err != nil {
		return add, err
	}
	for _, name := range add {
		m.groups.writtenAt[name] = time.Now()
	}
	add = slices.DeleteFunc(add, func(name string) bool { return m.groups.names[name] })
	return add, m.groups.change(ctx, m.cfg.Groups, add, nil)
}

func (m *Manager) recordedGroups(ctx context.Context) ([]string, error) {
	m.groups.slot <- struct{}{}
	defer func() { <-m.groups.slot }()
	if err := m.groups.load(ctx, m.cfg.Groups); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(m.groups.names)), nil
}

// ListAll lists the public IPs of the default resource group and of those on record, and drops groups without public IPs of
// Weir from the record. A group on record that cannot be read, for example because Weir lost its role there, is logged and
// left out.
func (m *Manager) ListAll(ctx context.Context) ([]lb.PublicIP, error) {
	names, err := m.recordedGroups(ctx)
	if err != nil {
		return nil, err
	}
	own, err := m.cfg.Azure.ListPublicIPs(ctx, m.cfg.Group.SubscriptionID, m.cfg.Group.ResourceGroup)
	if err != nil {
		return nil, fmt.Errorf("public IPs of resource group %s: %w", m.cfg.Group.ResourceGroup, err)
	}
	var unused []string
	for _, name := range names {
		ips, ok := m.listGroup(ctx, name)
		ips = slices.DeleteFunc(slices.Clone(ips), func(ip lb.PublicIP) bool { return m.cfg.otherGroup(ip) == "" })
		if own = append(own, ips...); ok && len(ips) == 0 {
			unused = append(unused, name)
		}
	}
	return own, m.forgetGroups(ctx, unused)
}

// listGroup lists the public IPs of a group on record; false if it cannot be read.
func (m *Manager) listGroup(ctx context.Context, name string) ([]lb.PublicIP, bool) {
	g := resourceGroup(m.cfg.Group)
	g.ResourceGroup = name
	ips, err := m.cfg.listPublicIPs(ctx, g)
	m.groups.slot <- struct{}{}
	defer func() { <-m.groups.slot }()
	if err == nil {
		delete(m.groups.unreadable, name)
	} else if !m.groups.unreadable[name] && ctx.Err() == nil {
		m.groups.unreadable[name] = true
		m.cfg.Log.WarnContext(ctx, "Weir made public IPs in a resource group that it cannot read now: those of deleted Services remain until it can. "+
			"Give its identity the role there, or delete them by hand", "resourceGroup", name, "err", err)
	}
	return ips, err == nil
}

// forgetGroups drops groups from the record, unless this process wrote there lately.
func (m *Manager) forgetGroups(ctx context.Context, names []string) error {
	m.groups.slot <- struct{}{}
	defer func() { <-m.groups.slot }()
	names = slices.DeleteFunc(names, func(name string) bool {
		at, written := m.groups.writtenAt[name]
		return written && time.Since(at) < groupTTL
	})
	for _, name := range names {
		delete(m.groups.writtenAt, name)
	}
	return m.groups.change(ctx, m.cfg.Groups, nil, names)
}
