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

// Members are the machines behind the load balancers that are Basic, as they were before the first of them left: what
// it takes to put them back. Machines that are in the same pools are written down together, for all of it has
// to fit into one object of the cluster.
type Members struct {
	// Pools are ARM ids, which the others name by their places in it.
	Pools      []string           `json:"pools"`
	Interfaces []InterfaceMembers `json:"networkInterfaces,omitempty"`
	ScaleSets  []SetMembers       `json:"scaleSets,omitempty"`
}

// InterfaceMembers are network interfaces of a resource group that are in the same pools.
type InterfaceMembers struct {
	Subscription string   `json:"subscription"`
	Group        string   `json:"resourceGroup"`
	In           Places   `json:"in"`
	Names        []string `json:"names"`
}

// SetMembers are a scale set. Its instances, if it is uniform, also those that are yet to come, are where its model is, but for
// Others.
type SetMembers struct {
	ID     lb.ResourceID     `json:"id"`
	Model  Places            `json:"model,omitempty"`
	Others []InstanceMembers `json:"others,omitempty"`
}

// InstanceMembers are instances that are in the same pools.
type InstanceMembers struct {
	In  Places   `json:"in,omitempty"`
	IDs []string `json:"ids"`
}

// Places are pools, by the name of the IP configuration that is in them, which in a scale set is behind that of its
// interface and a slash. Names are in lower case.
type Places map[string][]int

// mostMembers bounds how long the text of all members may be: an object of the cluster has 1 MiB.
const mostMembers = 256 << 10

// Before returns the journal as it has to be on record before some steps are carried out: machines do not leave before it
// is written down where they are, and nothing goes for good before that is. Once it is Final nobody can take it back, so
// that who writes it has to know that nobody has asked for that meanwhile.
func (j Journal) Before(s Steps, seen Seen) Journal {
	switch s.Phase {
	case Static, Verify, Done:
	case Detach:
		return j.behind(seen)
	default:
		if len(s.Delete)+len(s.PublicIPs)+len(s.Put) > 0 {
			j.Apart, j.Final = true, cmp.Or(j.Final, "Basic load balancers are gone, or about to go, and Azure makes none any more")
		}
	}
	return j
}

// WayBack says until which step a migration can be taken back, as far as that is known; or why it cannot. One that was not
// begun is as one that is about to.
func (j Journal) WayBack(seen Seen) (until Phase, why string) {
	switch why := j.OneWay(); {
	case why != "":
		return "", why
	case j.Gone(seen):
		return "", "somebody has deleted a load balancer of it, or made it anew"
	case j.behind(seen).Final != "":
		return Detach, j.behind(seen).Final
	case len(seen.basic()) == 0: // somebody has deleted them before
		return Upgrade, ""
	}
	return Delete, ""
}

// behind returns the journal with each machine that is behind a load balancer and is not in it yet. Of a machine
// that is in it the first look counts: a later one may find it half-way. Too many to be kept are not.
func (j Journal) behind(seen Seen) Journal {
	if j.Final != "" || j.Apart && j.Members == nil { // nobody knows where machines were that have left
		return j
	}
	next := Members{}
	if j.Members != nil {
		next = j.Members.clone()
	}
	ours, has := seen.ours(), j.Members.Machines()
	for _, i := range seen.Interfaces {
		if in := next.places(ours, "", i.InterfaceConfiguration); len(in) > 0 && has[i.ID.Key()].Name == "" {
			next.addInterface(i.ID, in)
		}
	}
	for _, set := range seen.ScaleSets {
		if has[set.ID.Key()].Name == "" {
			next.addSet(set, ours)
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

// places are where interfaces are, of the pools that are ours.
func (m *Members) places(ours nic.Ours, prefix string, interfaces ...lb.InterfaceConfiguration) Places {
	in := Places{}
	for _, i := range interfaces {
		for _, c := range i.IPConfigurations {
			for _, id := range c.Pools {
				if ours.Holds(id) {
					name := placeName(prefix, i, c)
					in[name] = append(in[name], m.number(id))
				}
			}
		}
	}
	return in
}

// ofSet is the prefix of names within a scale set.
const ofSet = "/"

func placeName(prefix string, i lb.InterfaceConfiguration, c lb.IPConfiguration) string {
	if prefix == "" {
		return strings.ToLower(c.Name)
	}
	return strings.ToLower(i.Name + prefix + c.Name)
}

// number is the place of a pool in Pools, which gets it if it is new.
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

// addSet adds a scale set, unless it is in no pool of ours at all.
func (m *Members) addSet(set ScaleSet, ours nic.Ours) {
	of := SetMembers{ID: set.ID, Model: m.places(ours, ofSet, set.Interfaces...)}
	member := len(of.Model) > 0
	for _, i := range set.Instances {
		in := m.places(ours, ofSet, i.Interfaces...)
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

// Machines are the network interfaces and the scale sets of it, by key; of nil there are none.
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

// validate checks what becomes part of requests: ids of machines, and pools of the load balancers of the journal.
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
