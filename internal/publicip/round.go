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

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// Round is the state of the public IPs of all Services written to one load balancer together. Not safe for
// concurrent use.
type Round struct {
	cfg   *Config
	on    lb.LoadBalancerID
	known map[string]lb.PublicIP // by key
	// listed are the resource groups that were read completely, by key.
	listed map[string]bool
	// owners are the recorded owners, unless they could not be read; claims are changes of them.
	owners     map[string]Owner
	unreadable error
	claims     map[string]*claim
	serviceOf  func() func(frontend string) string
	// first are writes that must precede those in writes, by key.
	first, writes map[string]*write
	// brought are the user-provided public IPs to change, with their requests: written after the load balancer.
	brought map[string][]*Request
	retired []lb.ResourceID
}

// write is a public IP to update or delete, with its requests; none if its Service was deleted.
type write struct {
	next    lb.PublicIP
	deletes bool
	by      []*Request
}

// Begin reads the public IPs of all requests, one list per resource group, and selects those they need. It
// writes nothing.
func (k *Keeper) Begin(ctx context.Context, on lb.LoadBalancerID, requests []*Request) *Round {
	r := k.newRound(on)
	read := map[string]error{}
	for _, req := range requests {
		req.Err, req.keys = nil, nil
		for _, g := range k.cfg.groups(req) {
			err, done := read[g.Key()]
			if !done {
				err = r.read(ctx, g)
				read[g.Key()] = err
			}
			if err != nil {
				req.Err = err
			}
		}
	}
	for _, req := range requests {
		if k.cfg.Look != nil && req.Err == nil && r.mayHaveSeveral(req) {
			req.Err = k.cfg.Look(ctx, on)
		}
	}
	r.pickAll(ctx, &k.owners, requests)
	return r
}

func (k *Keeper) newRound(on lb.LoadBalancerID) *Round {
	return &Round{
		cfg: &k.cfg, on: on, known: map[string]lb.PublicIP{}, listed: map[string]bool{}, brought: map[string][]*Request{},
		first: map[string]*write{}, writes: map[string]*write{}, serviceOf: sync.OnceValue(k.cfg.serviceOf),
	}
}

// Read returns a round without requests that knows the public IPs of the default resource group.
func (k *Keeper) Read(ctx context.Context, on lb.LoadBalancerID) (*Round, error) {
	r := k.newRound(on)
	return r, r.read(ctx, group(k.cfg.Group))
}

func (r *Round) pick(req *Request) {
	var updates []lb.PublicIP
	var changes []bool
	wants := make([]service.PublicIP, len(req.Desired.Frontends))
	for i, f := range req.Desired.Frontends {
		var next lb.PublicIP
		var changed, claims bool
		var err error
		if f.PublicIP != nil {
			wants[i] = r.resolve(*f.PublicIP, req)
			next, changed, claims, err = r.choose(wants[i], req)
		}
		if err != nil {
			req.Err = err
			return
		}
		if claims {
			r.claim(next, req)
		}
		updates, changes = append(updates, next), append(changes, changed)
	}
	r.leaveContested(req, updates, changes)
	for i, f := range req.Desired.Frontends {
		if f.PublicIP == nil {
			req.keys = append(req.keys, "")
			continue
		}
		key := updates[i].ID.Key()
		req.keys = append(req.keys, key)
		switch {
		case theirs(wants[i]) && (changes[i] || len(r.brought[key]) > 0):
			r.brought[key] = append(r.brought[key], req)
			r.known[key] = updates[i] // a request for another label gets an error
		case changes[i] && wants[i].LabelElsewhere && updates[i].Etag != "": // before the other public IP gets the label
			r.change(r.first, updates[i], req)
		case changes[i]:
			r.change(r.writes, updates[i], req)
		case r.writes[key] != nil:
			r.writes[key].by = append(r.writes[key].by, req)
		}
	}
}

// choose selects a public IP that no other client is updating: Azure would reject a load balancer write that
// refers to it. claims is set if the namespace must first become the owner.
func (r *Round) choose(want service.PublicIP, req *Request) (next lb.PublicIP, changed, claims bool, err error) {
	var u usage
	next, changed, err = choose(want, r.known, req, r.on, r.cfg.Location, func(ip lb.PublicIP) (err error) {
		u = r.usageOf(ip, req)
		claims, err = u.check()
		return err
	})
	if err != nil {
		return next, false, false, err
	}
	if theirs(want) && next.DNSLabel != u.ip.DNSLabel && !r.mayLabel(u) {
		return next, false, false, u.labelError(next.DNSLabel)
	}
	what := "public IP " + next.ID.Name
	if next.Provisioning == lb.Updating {
		return next, false, false, r.cfg.InProgress.Found(what, time.Now())
	}
	r.cfg.InProgress.Free(what)
	return next, changed, claims, nil
}

// change queues an update of a public IP for a Service; later requests see the new state.
func (r *Round) change(writes map[string]*write, next lb.PublicIP, req *Request) {
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
		if len(r.brought[key]) > 0 {
			continue // it has no label yet
		}
		for other, ip := range r.known {
			if key != "" && !slices.Contains(req.keys, other) && ip.DNSLabel != "" && ip.DNSLabel == r.known[key].DNSLabel && ip.Tags[service.TagDNSLabel] == req.Service && !r.cfg.foreign(ip) && r.mayLabel(r.usageOf(ip, req)) {
				ip.Tags = maps.Clone(ip.Tags)
				delete(ip.Tags, service.TagDNSLabel)
				ip.DNSLabel = ""
				writes[other] = &write{next: ip, by: []*Request{req}}
			}
		}
	}
}

func (r *Round) read(ctx context.Context, g lb.ResourceID) error {
	ips, err := r.cfg.list(ctx, g)
	r.listed[g.Key()] = err == nil
	for _, ip := range ips {
		r.known[ip.ID.Key()] = ip
	}
	return err
}

// list lists the public IPs of a resource group; none if the group does not exist.
func (c *Config) list(ctx context.Context, g lb.ResourceID) ([]lb.PublicIP, error) {
	ips, err := c.Azure.ListPublicIPs(ctx, g.SubscriptionID, g.ResourceGroup)
	if f := fault.From(err); f != nil && f.Class != fault.Stale {
		return nil, fmt.Errorf("public IPs of resource group %s: %w", g.ResourceGroup, err)
	}
	return ips, nil
}

// Of returns the public IP of a Service's frontend; false for a private one or before selection.
func (r *Round) Of(req *Request, frontend int) (lb.PublicIP, bool) {
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

// IsMade reports whether Weir is known to have made the address of a frontend.
func (r *Round) IsMade(f lb.Frontend) bool {
	ip, known := r.ByID(f.PublicIP)
	return f.PublicIP == "" || known && r.cfg.madeByWeir(ip)
}

// Needs reports whether a Service needs the address, or the public IP name, of a frontend on a load balancer it
// leaves.
func (r *Round) Needs(spec *service.Spec, f lb.Frontend) bool {
	ip, public := r.ByID(f.PublicIP)
	return spec != nil && slices.ContainsFunc(spec.Frontends, func(w service.Frontend) bool {
		switch {
		case w.PublicIP == nil:
			return f.PublicIP == "" && w.Frontend.Static && w.Frontend.PrivateIP == f.PrivateIP && strings.EqualFold(w.Frontend.Subnet, f.Subnet)
		case w.PublicIP.Address.IsValid():
			return public && w.PublicIP.Address == ip.Address
		}
		return public && w.PublicIP.ID.Key() == ip.ID.Key()
	})
}

// Family returns the family of the public IP with an ARM ID; empty if unknown.
func (r *Round) Family(id string) lb.Family {
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

// Unwanted returns the addresses of public IPs made for a Service that it no longer wants.
func (r *Round) Unwanted(req *Request) []netip.Addr {
	var all []netip.Addr
	for _, ip := range r.known {
		if strings.EqualFold(MadeFor(ip, r.cfg.ClusterName), req.Owner) && !r.Gets(req, ip) {
			all = append(all, ip.Address)
		}
	}
	return all
}

// Retire records the public IPs of removed frontends.
func (r *Round) Retire(changes []plan.Change) { r.retired = append(r.retired, lost(changes)...) }

// Lost returns the resource groups of the public IPs of removed frontends.
func Lost(changes []plan.Change) []lb.ResourceID {
	all := lost(changes)
	for i, id := range all {
		all[i] = group(id)
	}
	return all
}

func lost(changes []plan.Change) []lb.ResourceID {
	var all []lb.ResourceID
	for _, c := range changes {
		was, ok := c.Was.(lb.Frontend)
		if !ok || was.PublicIP == "" {
			continue
		}
		if is, stays := c.Is.(lb.Frontend); stays && strings.EqualFold(is.PublicIP, was.PublicIP) {
			continue
		}
		if id, err := lb.ParseResourceID(was.PublicIP, lb.TypePublicIP); err == nil {
			all = append(all, id)
		}
	}
	return all
}
