// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
)

// ownerStore is the ConfigMap of owners; it survives the process.
type ownerStore struct {
	mu      sync.Mutex
	record  publicip.OwnerRecord
	version int
	// unreadable fails reads, unwritable fails writes.
	unreadable, unwritable bool
	writes                 int
}

func (o *ownerStore) ReadOwners(context.Context) (publicip.OwnerRecord, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unreadable {
		return publicip.OwnerRecord{}, errors.New("the API server is away")
	}
	return publicip.OwnerRecord{Version: o.record.Version, Owners: maps.Clone(o.record.Owners)}, nil
}

func (o *ownerStore) WriteOwners(_ context.Context, r publicip.OwnerRecord) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unwritable {
		return "", errors.New("the API server is away")
	}
	if r.Version != o.record.Version {
		return "", fmt.Errorf("version %q is not %q", r.Version, o.record.Version)
	}
	o.version++
	o.writes++
	o.record = publicip.OwnerRecord{Version: strconv.Itoa(o.version), Owners: maps.Clone(r.Owners)}
	return o.record.Version, nil
}

// poolStore is the record of left pools.
type poolStore struct {
	mu                     sync.Mutex
	of                     map[lb.PoolKey]string
	unreadable, unwritable bool
}

func (p *poolStore) ReadPools(context.Context) (map[lb.PoolKey]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unreadable {
		return nil, errors.New("the API server is away")
	}
	return maps.Clone(p.of), nil
}

func (p *poolStore) KeepPools(_ context.Context, changed map[lb.PoolKey]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unwritable {
		return errors.New("the API server is away")
	}
	if p.of == nil {
		p.of = map[lb.PoolKey]string{}
	}
	for id, service := range changed {
		if p.of[id] = service; service == "" {
			delete(p.of, id)
		}
	}
	return nil
}

// groupStore is the record of resource groups.
type groupStore struct {
	mu                     sync.Mutex
	names                  []string
	unreadable, unwritable bool
}

func (g *groupStore) ReadGroups(context.Context) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unreadable {
		return nil, errors.New("the API server is away")
	}
	return slices.Clone(g.names), nil
}

func (g *groupStore) ChangeGroups(_ context.Context, add, remove []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unwritable {
		return errors.New("the API server is away")
	}
	g.names = slices.DeleteFunc(append(g.names, add...), func(name string) bool { return slices.Contains(remove, name) })
	return nil
}

func (g *groupStore) set(about string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unreadable, g.unwritable = about == "unreadable", about == "unwritable"
}

func (g *groupStore) spell() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return cmp.Or(strings.Join(g.names, "\n"), "nothing") + "\n"
}

// spell lists the recorded pools and their Services.
func (p *poolStore) spell() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	for _, key := range slices.Sorted(maps.Keys(p.of)) {
		text += fmt.Sprintf("%s of %s\n", short(string(key)), p.of[key])
	}
	return cmp.Or(text, "nothing\n")
}

func (p *poolStore) set(about string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unreadable, p.unwritable = about == "unreadable", about == "unwritable"; about == "lost" {
		p.of = nil
	}
}

// set changes the store: unreadable, unwritable, fine or lost.
func (o *ownerStore) set(about string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unreadable, o.unwritable = about == "unreadable", about == "unwritable"
	if about == "lost" {
		o.record = publicip.OwnerRecord{}
	}
}

func (p *process) AllowedPublicIPs(namespace string) string {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	return p.stage.grants[namespace]
}
