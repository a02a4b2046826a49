// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func (r *Round) removals(ctx context.Context, requests []*Request) (all []*write) {
	for _, l := range r.leftIn(requests) {
		now, err := r.cfg.list(ctx, l.group)
		if err != nil {
			for _, req := range l.by {
				req.Err = err
			}
			continue
		}
		slices.SortFunc(now, func(a, b lb.PublicIP) int { return strings.Compare(a.ID.Key(), b.ID.Key()) })
		for _, ip := range now {
			if removal, ok := r.removalOf(requests, ip); ok {
				all = append(all, removal)
			}
		}
	}
	return all
}

type left struct {
	group lb.ResourceID
	by    []*Request
}

func (r *Round) leftIn(requests []*Request) []*left {
	var all []*left
	add := func(id lb.ResourceID, req *Request) {
		g := group(id)
		at := slices.IndexFunc(all, func(l *left) bool { return l.group.Key() == g.Key() })
		if at < 0 {
			at = len(all)
			all = append(all, &left{group: g})
		}
		if req != nil && !slices.Contains(all[at].by, req) {
			all[at].by = append(all[at].by, req)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.known)) {
		ip := r.known[key]
		if req := r.leftBy(requests, ip); req != nil || r.cfg.orphan(ip) {
			add(ip.ID, req)
		}
	}
	for _, id := range r.retired {
		add(id, nil)
	}
	for _, req := range requests {
		for _, g := range req.Lost {
			add(g, req)
		}
	}
	return all
}

func (r *Round) removalOf(requests []*Request, ip lb.PublicIP) (*write, bool) {
	req := r.leftBy(requests, ip)
	switch {
	case req == nil:
		wanted := slices.ContainsFunc(requests, func(req *Request) bool { return r.spares(req, ip) })
		return &write{next: ip, deletes: true}, r.cfg.orphan(ip) && ip.UsedBy == "" && !wanted
	case req.Moves && !req.Leaves:
		return nil, false // its user may still be the Service itself, and UsedBy may be incomplete
	case (strings.EqualFold(MadeFor(ip, r.cfg.ClusterName), req.Owner) || r.cfg.orphan(ip)) && ip.UsedBy == "":
		return &write{next: ip, deletes: true, by: []*Request{req}}, true
	case req.Moves:
		return nil, false
	}
	next := leave(ip, req, r.cfg.ClusterName)
	return &write{next: next, by: []*Request{req}}, next.DNSLabel != ip.DNSLabel || !maps.Equal(next.Tags, ip.Tags)
}

// leftBy returns the Service that no longer wants a public IP made for it or carrying its DNS label; nil if
// none.
func (r *Round) leftBy(requests []*Request, ip lb.PublicIP) *Request {
	owner, labelled := MadeFor(ip, r.cfg.ClusterName), ip.Tags[service.TagDNSLabel]
	for _, req := range requests {
		if (owner != "" && strings.EqualFold(req.Owner, owner) || labelled == req.Service && !r.cfg.foreign(ip)) && !r.spares(req, ip) {
			return req
		}
	}
	return nil
}

// leave returns the state of a public IP that remains after its Service left: if made for the Service, without
// DNS label and marked as an orphan. Others keep their labels: any subscription could take a released label,
// and the Service may just be recreated.
func leave(ip lb.PublicIP, req *Request, cluster string) lb.PublicIP {
	ip.Tags = maps.Clone(ip.Tags)
	if ip.Tags[service.TagDNSLabel] == req.Service {
		delete(ip.Tags, service.TagDNSLabel)
		if MadeFor(ip, cluster) != "" {
			ip.DNSLabel = ""
		}
	}
	if strings.EqualFold(MadeFor(ip, cluster), req.Owner) {
		ip.Tags[service.TagService] = ""
	}
	return ip
}

// IsOrphan reports whether a public IP is marked as abandoned by its Service.
func (k *Keeper) IsOrphan(ip lb.PublicIP) bool { return k.cfg.orphan(ip) }

// Orphans returns the public IPs marked as abandoned by their Services.
func (r *Round) Orphans() (all []lb.PublicIP) {
	for _, ip := range r.known {
		if r.cfg.orphan(ip) {
			all = append(all, ip)
		}
	}
	return all
}

// IsAbandoned reports whether the Service of a frontend's public IP left it.
func (r *Round) IsAbandoned(f lb.Frontend) bool {
	ip, known := r.ByID(f.PublicIP)
	return known && r.cfg.orphan(ip)
}

func (c *Config) orphan(ip lb.PublicIP) bool {
	of, tagged := ip.Tags[service.TagService]
	return tagged && of == "" && MadeFor(ip, c.ClusterName) != ""
}
