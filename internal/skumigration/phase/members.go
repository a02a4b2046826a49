// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Members records the machines behind Basic load balancers before the first one leaves. Machines in
// the same pools are grouped, because all of it must fit into one Kubernetes object.
type Members struct {
	// Pools are ARM ids. Machines refer to them by index.
	Pools      []string           `json:"pools"`
	Interfaces []InterfaceMembers `json:"networkInterfaces,omitempty"`
	ScaleSets  []ScaleSetMembers  `json:"scaleSets,omitempty"`
}

// InterfaceMembers are network interfaces in the same pools.
type InterfaceMembers struct {
	Subscription string      `json:"subscription"`
	Group        string      `json:"resourceGroup"`
	Pools        PoolIndexes `json:"pools"`
	Names        []string    `json:"names"`
}

// ScaleSetMembers is a scale set. All instances, also future ones, are in the pools of its model, except
// Overrides.
type ScaleSetMembers struct {
	ID        lb.ResourceID     `json:"id"`
	Model     PoolIndexes       `json:"model,omitempty"`
	Overrides []InstanceMembers `json:"overrides,omitempty"`
}

// InstanceMembers are instances in the same pools.
type InstanceMembers struct {
	Pools PoolIndexes `json:"pools,omitempty"`
	IDs   []string    `json:"ids"`
}

// PoolIndexes maps the lower-case name of an IP configuration to its pools. In a scale set the name is
// "interface/configuration".
type PoolIndexes map[string][]int

// maxMembersSize bounds the JSON; a Kubernetes object holds 1 MiB.
const maxMembersSize = 256 << 10

// PrepareFor returns the journal to record before the steps: members before machines leave, and
// FinalReason before anything irreversible. The writer must check that no undo was requested.
func (j Journal) PrepareFor(s Steps, snapshot Snapshot) Journal {
	switch s.Phase {
	case PhaseStatic, PhaseVerify, PhaseDone:
	case PhaseDetach:
		return j.withMembers(snapshot)
	default:
		if len(s.Delete)+len(s.PublicIPs)+len(s.Put) > 0 {
			j.TrafficStopped, j.FinalReason = true, cmp.Or(j.FinalReason, "Basic load balancers are deleted, or about to be, and Azure creates no new ones")
		}
	}
	return j
}

// UndoLimit returns the last phase before which an undo is possible, if known, or why it is not. A
// migration that has not started counts as about to.
func (j Journal) UndoLimit(snapshot Snapshot) (until Phase, reason string) {
	switch reason := j.NoUndoReason(); {
	case reason != "":
		return "", reason
	case j.HasDeletedLoadBalancer(snapshot):
		return "", "another client has deleted or recreated one of its load balancers"
	case j.withMembers(snapshot).FinalReason != "":
		return PhaseDetach, j.withMembers(snapshot).FinalReason
	case len(snapshot.basicLoadBalancers()) == 0: // deleted by the user before
		return PhaseUpgrade, ""
	}
	return PhaseDelete, ""
}

// withMembers adds the machines behind a load balancer. The first record wins, because later ones may
// show a machine half-way. If the record is too large, the migration becomes final.
func (j Journal) withMembers(snapshot Snapshot) Journal {
	if j.FinalReason != "" || j.TrafficStopped && j.Members == nil { // the members are unknown
		return j
	}
	next := Members{}
	if j.Members != nil {
		next = j.Members.clone()
	}
	managed, resources := snapshot.managedPools(), j.Members.ResourceIDs()
	for _, i := range snapshot.Interfaces {
		if in := next.poolIndexes(managed, "", i.InterfaceConfiguration); len(in) > 0 && resources[i.ID.Key()].Name == "" {
			next.addInterface(i.ID, in)
		}
	}
	for _, set := range snapshot.ScaleSets {
		if resources[set.ID.Key()].Name == "" {
			next.addSet(set, managed)
		}
	}
	if text, err := json.Marshal(next); err != nil || len(text) > maxMembersSize {
		j.Members, j.FinalReason = nil, fmt.Sprintf("it would take %d KiB to keep where all machines were, and %d are kept", len(text)>>10+1, maxMembersSize>>10)
		return j
	}
	j.Members = &next
	return j
}

func (m Members) clone() Members {
	m.Pools, m.ScaleSets = slices.Clone(m.Pools), slices.Clone(m.ScaleSets)
	m.Interfaces = slices.Clone(m.Interfaces)
	for at := range m.Interfaces {
		m.Interfaces[at].Names = slices.Clone(m.Interfaces[at].Names)
	}
	return m
}

func (m *Members) poolIndexes(managed nic.ManagedPools, prefix string, interfaces ...lb.InterfaceConfiguration) PoolIndexes {
	in := PoolIndexes{}
	for _, i := range interfaces {
		for _, c := range i.IPConfigurations {
			for _, id := range c.Pools {
				if managed.HasPool(id) {
					name := configurationKey(prefix, i, c)
					in[name] = append(in[name], m.poolIndex(id))
				}
			}
		}
	}
	return in
}

const scaleSetSeparator = "/"

func configurationKey(prefix string, i lb.InterfaceConfiguration, c lb.IPConfiguration) string {
	if prefix == "" {
		return strings.ToLower(c.Name)
	}
	return strings.ToLower(i.Name + prefix + c.Name)
}

// poolIndex adds the pool if necessary.
func (m *Members) poolIndex(id string) int {
	at := slices.IndexFunc(m.Pools, func(pool string) bool { return strings.EqualFold(pool, id) })
	if at < 0 {
		at, m.Pools = len(m.Pools), append(m.Pools, id)
	}
	return at
}

func (m *Members) addInterface(id lb.ResourceID, in PoolIndexes) {
	at := slices.IndexFunc(m.Interfaces, func(of InterfaceMembers) bool {
		return of.Subscription == id.SubscriptionID && of.Group == id.ResourceGroup && reflect.DeepEqual(of.Pools, in)
	})
	if at < 0 {
		at, m.Interfaces = len(m.Interfaces), append(m.Interfaces, InterfaceMembers{Subscription: id.SubscriptionID, Group: id.ResourceGroup, Pools: in})
	}
	m.Interfaces[at].Names = append(m.Interfaces[at].Names, id.Name)
}

// addSet skips a scale set in no managed pool.
func (m *Members) addSet(set ScaleSet, managed nic.ManagedPools) {
	of := ScaleSetMembers{ID: set.ID, Model: m.poolIndexes(managed, scaleSetSeparator, set.Interfaces...)}
	member := len(of.Model) > 0
	for _, i := range set.Instances {
		in := m.poolIndexes(managed, scaleSetSeparator, i.Interfaces...)
		member = member || len(in) > 0
		if reflect.DeepEqual(in, of.Model) {
			continue
		}
		at := slices.IndexFunc(of.Overrides, func(o InstanceMembers) bool { return reflect.DeepEqual(o.Pools, in) })
		if at < 0 {
			at, of.Overrides = len(of.Overrides), append(of.Overrides, InstanceMembers{Pools: in})
		}
		of.Overrides[at].IDs = append(of.Overrides[at].IDs, i.ID)
	}
	if member {
		m.ScaleSets = append(m.ScaleSets, of)
	}
}

func (i InterfaceMembers) resourceID(name string) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: i.Subscription, ResourceGroup: i.Group, Type: lb.TypeNetworkInterface, Name: name}
}

// ResourceIDs accepts a nil receiver.
func (m *Members) ResourceIDs() map[string]lb.ResourceID {
	ids := map[string]lb.ResourceID{}
	if m == nil {
		return ids
	}
	for _, of := range m.Interfaces {
		for _, name := range of.Names {
			ids[of.resourceID(name).Key()] = of.resourceID(name)
		}
	}
	for _, of := range m.ScaleSets {
		ids[of.ID.Key()] = of.ID
	}
	return ids
}

// validate checks what is used in request URLs.
func (m *Members) validate(of []LoadBalancer) error {
	if m == nil {
		return nil
	}
	var indexes []PoolIndexes
	for _, id := range m.Pools {
		if !slices.ContainsFunc(of, func(b LoadBalancer) bool { return lb.PoolKey(strings.ToLower(id)).LoadBalancer() == b.ID.Key() }) {
			return fmt.Errorf("pool %q is of none of its load balancers", id)
		}
	}
	for _, i := range m.Interfaces {
		indexes = append(indexes, i.Pools)
		for _, name := range i.Names {
			if err := i.resourceID(name).Validate(); err != nil {
				return err
			}
		}
	}
	for _, set := range m.ScaleSets {
		if err := set.ID.Validate(); err != nil || set.ID.Type != lb.TypeScaleSet {
			return fmt.Errorf("scale set %s: %w", set.ID, errors.Join(errors.New("want the id of one"), err))
		}
		indexes = append(indexes, set.Model)
		for _, o := range set.Overrides {
			indexes = append(indexes, o.Pools)
		}
	}
	for _, places := range indexes {
		for at := range maps.Values(places) {
			if slices.ContainsFunc(at, func(n int) bool { return n < 0 || n >= len(m.Pools) }) {
				return errors.New("machines are in pools that it does not have")
			}
		}
	}
	return nil
}
