// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Round is the state of the public IPs of all Services written to one load balancer together. Not safe for
// concurrent use.
type Round struct {
	cfg *Config
	// recordGroups persists the resource groups of writes before they are sent.
	recordGroups func(context.Context, []*write) (unrecorded []string, err error)

	on    lb.LoadBalancerID
	known map[string]lb.PublicIP // by key
	// listedGroups are the resource groups that were read completely, by key.
	listedGroups map[string]bool
	// missingGroups are the resource groups that do not exist, by key.
	missingGroups map[string]bool
	// owners are the recorded owners, unless they could not be read; claims are changes of them.
	owners    map[string]Owner
	ownersErr error
	claims    map[string]*claim
	serviceOf func() func(frontend string) string
	// first are writes that must precede those in writes, by key.
	first, writes map[string]*write
	// userProvided are the user-provided public IPs to change, with their requests: written after the load balancer.
	userProvided map[string][]*Request
	removedIPs   []lb.ResourceID
}

// write is a public IP to update or delete, with its requests; none if its Service was deleted.
type write struct {
	next     lb.PublicIP
	isDelete bool
	isDone   bool // Azure reported success
	by       []*Request
}

// BeginRound reads the public IPs of all requests, one list per resource group, and selects those they need. It
// writes nothing.
func (m *Manager) BeginRound(ctx context.Context, on lb.LoadBalancerID, requests []*Request) *Round {
	r := m.newRound(on)
	read := map[string]error{}
	for _, req := range requests {
		req.Err, req.keys = nil, nil
		for _, g := range m.cfg.requestGroups(req) {
			err, done := read[g.Key()]
			if !done {
				err = r.readGroup(ctx, g)
				read[g.Key()] = err
			}
			if err != nil {
				req.Err = err
			}
		}
	}
	for _, req := range requests {
		if m.cfg.ReadRules != nil && req.Err == nil && r.mayHaveMultiple(req) {
			req.Err = m.cfg.ReadRules(ctx, on)
		}
	}
	r.pickAll(ctx, &m.owners, requests)
	return r
}

func (m *Manager) newRound(on lb.LoadBalancerID) *Round {
	return &Round{
		cfg: &m.cfg, recordGroups: m.recordGroups, on: on, known: map[string]lb.PublicIP{}, listedGroups: map[string]bool{}, missingGroups: map[string]bool{}, userProvided: map[string][]*Request{},
		first: map[string]*write{}, writes: map[string]*write{}, serviceOf: sync.OnceValue(m.cfg.serviceOf),
	}
}

// ReadRound returns a round without requests that knows the public IPs of the default resource group and of those on record
// that it can read.
func (m *Manager) ReadRound(ctx context.Context, on lb.LoadBalancerID) (*Round, error) {
	r := m.newRound(on)
	names, err := m.recordedGroups(ctx)
	if err != nil {
		return r, err
	}
	for _, name := range names {
		ips, _ := m.listGroup(ctx, name)
		for _, ip := range ips {
			r.known[ip.ID.Key()] = ip
		}
	}
	return r, r.readGroup(ctx, resourceGroup(m.cfg.Group))
}

// setZones sets the edge zone of a new public IP, or its availability zones. One from a prefix gets those of the prefix. An
// edge zone has no availability zones.
func (r *Round) setZones(ctx context.Context, ip *lb.PublicIP, want service.PublicIP) (err error) {
	if r.cfg.EdgeZoneOf != nil {
		ip.ExtendedLocation, err = r.cfg.EdgeZoneOf(ctx, r.on)
	}
	named := service.ZoneChoice(want.Zones)
	switch {
	case err != nil || want.Prefix != "" && len(want.Zones) == 0:
		return err
	case ip.ExtendedLocation != "":
		return named.CheckEdgeZone(ip.ExtendedLocation)
	}
	ip.Zones, err = r.cfg.Zones.Region(ctx, r.cfg.Location).Pick(named, r.cfg.DefaultZones)
	return err
}

func (r *Round) pickPublicIPs(ctx context.Context, req *Request) {
	var updates []lb.PublicIP
	var changes []bool
	wants := make([]service.PublicIP, len(req.Desired.Frontends))
	for i, f := range req.Desired.Frontends {
		var next lb.PublicIP
		var changed, claims bool
		var err error
		if f.PublicIP != nil {
			wants[i] = r.resolveName(*f.PublicIP, req)
			next, changed, claims, err = r.chooseAvailable(ctx, wants[i], req)
		}
		if err != nil {
			req.Err = err
			return
		}
		if claims {
			r.claimOwner(next, req)
		}
		updates, changes = append(updates, next), append(changes, changed)
	}
	r.skipConflicting(req, updates, changes)
	for i, f := range req.Desired.Frontends {
		if f.PublicIP == nil {
			req.keys = append(req.keys, "")
			continue
		}
		key := updates[i].ID.Key()
		req.keys = append(req.keys, key)
		switch {
		case isUserProvided(wants[i]) && (changes[i] || len(r.userProvided[key]) > 0):
			r.userProvided[key] = append(r.userProvided[key], req)
			r.known[key] = updates[i] // a request for another label gets an error
		case changes[i] && wants[i].LabelOnOther && updates[i].Etag != "": // before the other public IP gets the label
			r.queueChange(r.first, updates[i], req)
		case changes[i]:
			r.queueChange(r.writes, updates[i], req)
		case r.writes[key] != nil:
			r.writes[key].by = append(r.writes[key].by, req)
		}
	}
}

// chooseAvailable selects a public IP that no other client is updating: Azure would reject a load balancer write that
// refers to it. claims is set if the namespace must first become the owner.
func (r *Round) chooseAvailable(ctx context.Context, want service.PublicIP, req *Request) (next lb.PublicIP, changed, claims bool, err error) {
	var u usage
	next, changed, err = choosePublicIP(want, r.known, req, r.on, r.cfg.Location, func(ip lb.PublicIP) (err error) {
		u = r.usageOf(ip, req)
		claims, err = u.checkUse()
		return err
	}, func(ip *lb.PublicIP, want service.PublicIP) error { return r.setZones(ctx, ip, want) })
	if _, exists := r.known[next.ID.Key()]; err == nil && !exists {
		err = r.checkNew(req)
	}
	if err != nil {
		return next, false, false, err
	}
	if isUserProvided(want) && next.DNSLabel != u.ip.DNSLabel && !r.canLabel(u) {
		return next, false, false, u.labelError(next.DNSLabel)
	}
	text := "public IP " + next.ID.Name
	if next.Provisioning == lb.Updating {
		return next, false, false, r.cfg.InProgress.RecordUpdating(text, time.Now())
	}
	r.cfg.InProgress.RecordIdle(text)
	return next, changed, claims, nil
}

// queueChange queues an update of a public IP for a Service; later requests see the new state.
func (r *Round) queueChange(writes map[string]*write, next lb.PublicIP, req *Request) {
	key := next.ID.Key()
	r.known[key], req.Changed = next, true
	if writes[key] == nil {
		writes[key] = &write{}
	}
	writes[key].next = next
	writes[key].by = append(writes[key].by, req)
}

// releaseLabel removes the Service's DNS label from its former public IP; labels are unique.
func (r *Round) releaseLabel(req *Request, writes map[string]*write) {
	for _, key := range req.keys {
		if len(r.userProvided[key]) > 0 {
			continue // it has no label yet
		}
		for other, ip := range r.known {
			if key != "" && !slices.Contains(req.keys, other) && ip.DNSLabel != "" && ip.DNSLabel == r.known[key].DNSLabel && ip.Tags[service.TagDNSLabel] == req.Service && !r.cfg.isForeign(ip) && r.canLabel(r.usageOf(ip, req)) {
				ip.Tags = maps.Clone(ip.Tags)
				delete(ip.Tags, service.TagDNSLabel)
				ip.DNSLabel = ""
				writes[other] = &write{next: ip, by: []*Request{req}}
			}
		}
	}
}

func (r *Round) readGroup(ctx context.Context, g lb.ResourceID) error {
	ips, err := r.cfg.Azure.ListPublicIPs(ctx, g.SubscriptionID, g.ResourceGroup)
	f := armerror.FromError(err)
	r.missingGroups[g.Key()] = f != nil && f.Class == armerror.Stale
	err = listError(g, err)
	r.listedGroups[g.Key()] = err == nil
	for _, ip := range ips {
		r.known[ip.ID.Key()] = ip
	}
	return err
}

// listPublicIPs lists the public IPs of a resource group; none if the group does not exist.
func (c *Config) listPublicIPs(ctx context.Context, g lb.ResourceID) ([]lb.PublicIP, error) {
	ips, err := c.Azure.ListPublicIPs(ctx, g.SubscriptionID, g.ResourceGroup)
	return ips, listError(g, err)
}

// listError returns the error of a list of public IPs; nil for a group that does not exist.
func listError(g lb.ResourceID, err error) error {
	if f := armerror.FromError(err); f == nil || f.Class == armerror.Stale {
		return nil
	}
	return fmt.Errorf("public IPs of resource group %s: %w", g.ResourceGroup, err)
}

// PublicIPOf returns the public IP of a Service's frontend; false for a private one or before selection.
func (r *Round) PublicIPOf(req *Request, frontend int) (lb.PublicIP, bool) {
	if frontend >= len(req.keys) || req.keys[frontend] == "" {
		return lb.PublicIP{}, false
	}
	return r.known[req.keys[frontend]], true
}

// ByID returns the public IP with an ARM ID; false if it was not read.
func (r *Round) ByID(id string) (lb.PublicIP, bool) {
	parsed, err := lb.ParseResourceID(id, lb.TypePublicIP)
	if err != nil {
		return lb.PublicIP{}, false
	}
	ip, known := r.known[parsed.Key()]
	return ip, known
}

// IsManaged reports whether Weir is known to have made the address of a frontend.
func (r *Round) IsManaged(f lb.Frontend) bool {
	ip, known := r.ByID(f.PublicIP)
	return f.PublicIP == "" || known && r.cfg.isManaged(ip)
}

// NeedsAddress reports whether a Service needs the address, or the public IP name, of a frontend on a load balancer it
// leaves.
func (r *Round) NeedsAddress(spec *service.Spec, f lb.Frontend) bool {
	ip, public := r.ByID(f.PublicIP)
	return spec != nil && slices.ContainsFunc(spec.Frontends, func(w service.Frontend) bool {
		switch {
		case w.PublicIP == nil:
			return f.PublicIP == "" && w.Frontend.Static && w.Frontend.PrivateIP == f.PrivateIP && strings.EqualFold(w.Frontend.Subnet, f.Subnet)
		case w.PublicIP.Address.IsValid():
			return public && w.PublicIP.Address == ip.Address
		}
		if public && !w.PublicIP.UserNamed && ip.Family == w.PublicIP.Family && isRetainedFor(ip, r.cfg.ClusterName, w.PublicIP.Tags[service.TagService]) {
			return true
		}
		return public && w.PublicIP.ID.Key() == ip.ID.Key()
	})
}

// FamilyOf returns the family of the public IP with an ARM ID; empty if unknown.
func (r *Round) FamilyOf(id string) lb.Family {
	ip, _ := r.ByID(id)
	return ip.Family
}

// AddressAt returns the address of a plan's place: a public IP ID, or a subnet and private address.
func (r *Round) AddressAt(place string) string {
	if ip, ok := r.known[place]; ok {
		return ip.Address.String()
	}
	_, private, _ := strings.Cut(place, " ")
	return private
}

// UnwantedAddresses returns the addresses of public IPs made for a Service that it no longer wants.
func (r *Round) UnwantedAddresses(req *Request) []netip.Addr {
	var addresses []netip.Addr
	for _, ip := range r.known {
		if strings.EqualFold(ManagedOwner(ip, r.cfg.ClusterName), req.Owner) && !r.WillUse(req, ip) {
			addresses = append(addresses, ip.Address)
		}
	}
	return addresses
}

// RecordRemoved records the public IPs of removed frontends.
func (r *Round) RecordRemoved(changes []lb.Change) {
	r.removedIPs = append(r.removedIPs, lostPublicIPs(changes)...)
}

// LostGroups returns the resource groups of the public IPs of removed frontends.
func LostGroups(changes []lb.Change) []lb.ResourceID {
	ips := lostPublicIPs(changes)
	for i, id := range ips {
		ips[i] = resourceGroup(id)
	}
	return ips
}

func lostPublicIPs(changes []lb.Change) []lb.ResourceID {
	var ids []lb.ResourceID
	for _, c := range changes {
		old, ok := c.Was.(lb.Frontend)
		if !ok || old.PublicIP == "" {
			continue
		}
		if frontend, ok := c.Is.(lb.Frontend); ok && strings.EqualFold(frontend.PublicIP, old.PublicIP) {
			continue
		}
		if id, err := lb.ParseResourceID(old.PublicIP, lb.TypePublicIP); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
