// SPDX-License-Identifier: Apache-2.0

package migrate

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
	ScaleSets  []SetMembers       `json:"scaleSets,omitempty"`
}

// InterfaceMembers are network interfaces in the same pools.
type InterfaceMembers struct {
	Subscription string   `json:"subscription"`
	Group        string   `json:"resourceGroup"`
	In           Places   `json:"in"`
	Names        []string `json:"names"`
}

// SetMembers is a scale set. All instances, also future ones, are in the pools of its model, except
// Overrides.
type SetMembers struct {
	ID     lb.ResourceID     `json:"id"`
	Model  Places            `json:"model,omitempty"`
	Others []InstanceMembers `json:"others,omitempty"`
}

// InstanceMembers are instances in the same pools.
type InstanceMembers struct {
	In  Places   `json:"in,omitempty"`
	IDs []string `json:"ids"`
}

// Places maps the lower-case name of an IP configuration to its pools. In a scale set the name is
// "interface/configuration".
type Places map[string][]int

// mostMembers bounds the JSON; a Kubernetes object holds 1 MiB.
const mostMembers = 256 << 10

// Before returns the journal to record before the steps: members before machines leave, and
// FinalReason before anything irreversible. The writer must check that no undo was requested.
func (j Journal) Before(s Steps, snapshot Seen) Journal {
	switch s.Phase {
	case Static, Verify, Done:
	case Detach:
		return j.behind(snapshot)
	default:
		if len(s.Delete)+len(s.PublicIPs)+len(s.Put) > 0 {
			j.Apart, j.Final = true, cmp.Or(j.Final, "Basic load balancers are gone, or about to go, and Azure makes none any more")
		}
	}
	return j
}

// WayBack returns the last phase before which an undo is possible, if known, or why it is not. A
// migration that has not started counts as about to.
func (j Journal) WayBack(snapshot Seen) (until Phase, reason string) {
	switch reason := j.OneWay(); {
	case reason != "":
		return "", reason
	case j.Gone(snapshot):
		return "", "somebody has deleted a load balancer of it, or made it anew"
	case j.behind(snapshot).Final != "":
		return Detach, j.behind(snapshot).Final
	case len(snapshot.basic()) == 0: // deleted by the user before
		return Upgrade, ""
	}
	return Delete, ""
}

// behind adds the machines behind a load balancer. The first record wins, because later ones may
// show a machine half-way. If the record is too large, the migration becomes final.
func (j Journal) behind(snapshot Seen) Journal {
	if j.Final != "" || j.Apart && j.Members == nil { // the members are unknown
		return j
	}
	next := Members{}
	if j.Members != nil {
		next = j.Members.clone()
	}
	managed, has := snapshot.ours(), j.Members.Machines()
	for _, i := range snapshot.Interfaces {
		if in := next.places(managed, "", i.InterfaceConfiguration); len(in) > 0 && has[i.ID.Key()].Name == "" {
			next.addInterface(i.ID, in)
		}
	}
	for _, set := range snapshot.ScaleSets {
		if has[set.ID.Key()].Name == "" {
			next.addSet(set, managed)
		}
	}
	if text, err := json.Marshal(next); err != nil || len(text) > mostMembers {
		j.Members, j.Final = nil, fmt.Sprintf("it would take %d KiB to keep where all machines were, and %d are kept", len(text)>>10+1, mostMembers>>10)
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

func (m *Members) places(managed nic.Ours, prefix string, interfaces ...lb.InterfaceConfiguration) Places {
	in := Places{}
	for _, i := range interfaces {
		for _, c := range i.IPConfigurations {
			for _, id := range c.Pools {
				if managed.Holds(id) {
					name := placeName(prefix, i, c)
					in[name] = append(in[name], m.number(id))
				}
			}
		}
	}
	return in
}

const ofSet = "/"

func placeName(prefix string, i lb.InterfaceConfiguration, c lb.IPConfiguration) string {
	if prefix == "" {
		return strings.ToLower(c.Name)
	}
	return strings.ToLower(i.Name + prefix + c.Name)
}

// number adds the pool if necessary.
func (m *Members) number(id string) int {
	at := slices.IndexFunc(m.Pools, func(has string) bool { return strings.EqualFold(has, id) })
	if at < 0 {
		at, m.Pools = len(m.Pools), append(m.Pools, id)
	}
	return at
}

func (m *Members) addInterface(id lb.ResourceID, in Places) {
	at := slices.IndexFunc(m.Interfaces, func(of InterfaceMembers) bool {
		return of.Subscription == id.SubscriptionID && of.Group == id.ResourceGroup && reflect.DeepEqual(of.In, in)
	})
	if at < 0 {
		at, m.Interfaces = len(m.Interfaces), append(m.Interfaces, InterfaceMembers{Subscription: id.SubscriptionID, Group: id.ResourceGroup, In: in})
	}
	m.Interfaces[at].Names = append(m.Interfaces[at].Names, id.Name)
}

// addSet skips a scale set in no managed pool.
func (m *Members) addSet(set ScaleSet, managed nic.Ours) {
	of := SetMembers{ID: set.ID, Model: m.places(managed, ofSet, set.Interfaces...)}
	member := len(of.Model) > 0
	for _, i := range set.Instances {
		in := m.places(managed, ofSet, i.Interfaces...)
		member = member || len(in) > 0
		if reflect.DeepEqual(in, of.Model) {
			continue
		}
		at := slices.IndexFunc(of.Others, func(o InstanceMembers) bool { return reflect.DeepEqual(o.In, in) })
		if at < 0 {
			at, of.Others = len(of.Others), append(of.Others, InstanceMembers{In: in})
		}
		of.Others[at].IDs = append(of.Others[at].IDs, i.ID)
	}
	if member {
		m.ScaleSets = append(m.ScaleSets, of)
	}
}

func (of InterfaceMembers) id(name string) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: of.Subscription, ResourceGroup: of.Group, Type: lb.TypeNetworkInterface, Name: name}
}

// Machines accepts a nil receiver.
func (m *Members) Machines() map[string]lb.ResourceID {
	all := map[string]lb.ResourceID{}
	if m == nil {
		return all
	}
	for _, of := range m.Interfaces {
		for _, name := range of.Names {
			all[of.id(name).Key()] = of.id(name)
		}
	}
	for _, of := range m.ScaleSets {
		all[of.ID.Key()] = of.ID
	}
	return all
}

// validate checks what is used in request URLs.
func (m *Members) validate(of []Balancer) error {
	if m == nil {
		return nil
	}
	var all []Places
	for _, id := range m.Pools {
		if !slices.ContainsFunc(of, func(b Balancer) bool { return lb.PoolKey(strings.ToLower(id)).LoadBalancer() == b.ID.Key() }) {
			return fmt.Errorf("pool %q is of none of its load balancers", id)
		}
	}
	for _, i := range m.Interfaces {
		all = append(all, i.In)
		for _, name := range i.Names {
			if err := i.id(name).Validate(); err != nil {
				return err
			}
		}
	}
	for _, set := range m.ScaleSets {
		if err := set.ID.Validate(); err != nil || set.ID.Type != lb.TypeScaleSet {
			return fmt.Errorf("scale set %s: %w", set.ID, errors.Join(errors.New("want the id of one"), err))
		}
		all = append(all, set.Model)
		for _, o := range set.Others {
			all = append(all, o.In)
		}
	}
	for _, places := range all {
		for at := range maps.Values(places) {
			if slices.ContainsFunc(at, func(n int) bool { return n < 0 || n >= len(m.Pools) }) {
				return errors.New("machines are in pools that it does not have")
			}
		}
	}
	return nil
}
