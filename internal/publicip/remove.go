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

// removals are what becomes of the public IPs that these Services have left.
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
			if gone, ok := r.removalOf(requests, ip); ok {
				all = append(all, gone)
			}
		}
	}
	return all
}

// left is a resource group that has to be looked through, and for whom.
type left struct {
	group lb.ResourceID
	by    []*Request
}

// leftIn are the resource groups where Services may have left some.
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

// removalOf says what is to become of a public IP; false for nothing.
func (r *Round) removalOf(requests []*Request, ip lb.PublicIP) (*write, bool) {
	req := r.leftBy(requests, ip)
	switch {
	case req == nil:
		wanted := slices.ContainsFunc(requests, func(req *Request) bool { return r.spares(req, ip) })
		return &write{next: ip, deletes: true}, r.cfg.orphan(ip) && ip.UsedBy == "" && !wanted
	case req.Moves && !req.Leaves:
		return nil, false // what has it may still be the Service's own, and not every UsedBy may be shown
	case (strings.EqualFold(MadeFor(ip, r.cfg.ClusterName), req.Owner) || r.cfg.orphan(ip)) && ip.UsedBy == "":
		return &write{next: ip, deletes: true, by: []*Request{req}}, true
	case req.Moves:
		return nil, false
	}
	next := leave(ip, req, r.cfg.ClusterName)
	return &write{next: next, by: []*Request{req}}, next.DNSLabel != ip.DNSLabel || !maps.Equal(next.Tags, ip.Tags)
}

// leftBy returns the Service that does not want a public IP any more that was made for
// it, or that has its DNS label; nil if there is none.
func (r *Round) leftBy(requests []*Request, ip lb.PublicIP) *Request {
	owner, labelled := MadeFor(ip, r.cfg.ClusterName), ip.Tags[service.TagDNSLabel]
	for _, req := range requests {
		if (owner != "" && strings.EqualFold(req.Owner, owner) || labelled == req.Service && !r.cfg.foreign(ip)) && !r.spares(req, ip) {
			return req
		}
	}
	return nil
}

// leave is what a public IP becomes that stays when a Service leaves it: if it was made for the Service,
// without its DNS label, and marked as nobody's. Others keep their labels: a label that is given up is
// free for any subscription, and a Service may only be recreated.
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

// IsOrphan reports whether a public IP is marked as one that its Service has left.
func (k *Keeper) IsOrphan(ip lb.PublicIP) bool { return k.cfg.orphan(ip) }

// Orphans returns the public IPs that are marked as those that their Services have left.
func (r *Round) Orphans() (all []lb.PublicIP) {
	for _, ip := range r.known {
		if r.cfg.orphan(ip) {
			all = append(all, ip)
		}
	}
	return all
}

// IsAbandoned reports whether the Service has left the public IP of a frontend.
func (r *Round) IsAbandoned(f lb.Frontend) bool {
	ip, known := r.ByID(f.PublicIP)
	return known && r.cfg.orphan(ip)
}

// orphan reports whether a public IP is marked as one that its Service has left.
func (c *Config) orphan(ip lb.PublicIP) bool {
	of, tagged := ip.Tags[service.TagService]
	return tagged && of == "" && MadeFor(ip, c.ClusterName) != ""
}
