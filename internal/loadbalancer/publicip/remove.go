// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func (r *Round) planRemovals(ctx context.Context, requests []*Request) (writes []*write) {
	for _, l := range r.searchGroups(requests) {
		current, err := r.cfg.listPublicIPs(ctx, l.group)
		if err != nil {
			for _, req := range l.by {
				req.Err = err
			}
			continue
		}
		slices.SortFunc(current, func(a, b lb.PublicIP) int { return strings.Compare(a.ID.Key(), b.ID.Key()) })
		for _, ip := range current {
			if removal, ok := r.planRemoval(requests, ip); ok {
				writes = append(writes, removal)
			}
		}
	}
	return writes
}

// applyRemovals applies removals, and reads the public IPs again: Azure may report a deletion as successful and keep
// the resource.
func (r *Round) applyRemovals(ctx context.Context, removals []*write) {
	r.applyWrites(ctx, removals)
	deleted := map[lb.ResourceID][]*write{}
	for _, w := range removals {
		if w.isDelete && w.isDone {
			deleted[resourceGroup(w.next.ID)] = append(deleted[resourceGroup(w.next.ID)], w)
		}
	}
	for group, writes := range deleted {
		now, err := r.cfg.listPublicIPs(ctx, group)
		for _, w := range writes {
			remains := func(ip lb.PublicIP) bool { return ip.ID.Key() == w.next.ID.Key() && ip.Provisioning != lb.Updating } // which includes Deleting
			switch {
			case err != nil:
				r.recordResult(ctx, w, lb.PublicIP{}, err)
			case slices.ContainsFunc(now, remains):
				r.recordResult(ctx, w, lb.PublicIP{}, &armerror.Fault{
					Class: armerror.Retriable, Code: armerror.CodeOutcomeUnknown, Reason: "outcome_unknown",
					Err: fmt.Errorf("public IP %s: Azure reported its deletion as successful, and still has it", w.next.ID.Name),
				})
			}
		}
	}
}

type searchGroup struct {
	group lb.ResourceID
	by    []*Request
}

func (r *Round) searchGroups(requests []*Request) []*searchGroup {
	var groups []*searchGroup
	add := func(id lb.ResourceID, req *Request) {
		g := resourceGroup(id)
		at := slices.IndexFunc(groups, func(l *searchGroup) bool { return l.group.Key() == g.Key() })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &searchGroup{group: g})
		}
		if req != nil && !slices.Contains(groups[at].by, req) {
			groups[at].by = append(groups[at].by, req)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.known)) {
		ip := r.known[key]
		if req := r.abandonedBy(requests, ip); req != nil || r.cfg.isOrphan(ip) {
			add(ip.ID, req)
		}
	}
	for _, id := range r.removedIPs {
		add(id, nil)
	}
	for _, req := range requests {
		for _, g := range req.LostGroups {
			add(g, req)
		}
	}
	return groups
}

func (r *Round) planRemoval(requests []*Request, ip lb.PublicIP) (*write, bool) {
	req := r.abandonedBy(requests, ip)
	switch {
	case req == nil:
		wanted := slices.ContainsFunc(requests, func(req *Request) bool { return r.isWanted(req, ip) })
		return &write{next: ip, isDelete: true}, r.cfg.isOrphan(ip) && ip.UsedBy == "" && !wanted
	case req.IsMoving && !req.IsLeaving:
		return nil, false // its user may still be the Service itself, and UsedBy may be incomplete
	case req.Retain && !req.IsMoving && strings.EqualFold(ManagedOwner(ip, r.cfg.ClusterName), req.Owner):
		return &write{next: retainAddress(ip, req, time.Now()), by: []*Request{req}}, true
	case (strings.EqualFold(ManagedOwner(ip, r.cfg.ClusterName), req.Owner) || r.cfg.isOrphan(ip)) && ip.UsedBy == "":
		return &write{next: ip, isDelete: true, by: []*Request{req}}, true
	case req.IsMoving:
		return nil, false
	}
	next := detachService(ip, req, r.cfg.ClusterName)
	return &write{next: next, by: []*Request{req}}, next.DNSLabel != ip.DNSLabel || !maps.Equal(next.Tags, ip.Tags)
}

// abandonedBy returns the Service that no longer wants a public IP made for it or carrying its DNS label; nil if
// none.
func (r *Round) abandonedBy(requests []*Request, ip lb.PublicIP) *Request {
	owner, labelled := ManagedOwner(ip, r.cfg.ClusterName), ip.Tags[service.TagDNSLabel]
	for _, req := range requests {
		if (owner != "" && strings.EqualFold(req.Owner, owner) || labelled == req.Service && !r.cfg.isForeign(ip)) && !r.isWanted(req, ip) {
			return req
		}
	}
	return nil
}

// detachService returns the state of a public IP that remains after its Service left: if made for the Service, without
// DNS label and marked as an orphan. Others keep their labels: any subscription could take a released label,
// and the Service may just be recreated.
func detachService(ip lb.PublicIP, req *Request, cluster string) lb.PublicIP {
	ip.Tags = maps.Clone(ip.Tags)
	if ip.Tags[service.TagDNSLabel] == req.Service {
		delete(ip.Tags, service.TagDNSLabel)
		if ManagedOwner(ip, cluster) != "" {
			ip.DNSLabel = ""
		}
	}
	if strings.EqualFold(ManagedOwner(ip, cluster), req.Owner) {
		ip.Tags[service.TagService] = ""
	}
	return ip
}

// IsOrphan reports whether a public IP is marked as abandoned by its Service.
func (m *Manager) IsOrphan(ip lb.PublicIP) bool { return m.cfg.isOrphan(ip) }

// Orphans returns the public IPs marked as abandoned by their Services.
func (r *Round) Orphans() (ips []lb.PublicIP) {
	for _, ip := range r.known {
		if r.cfg.isOrphan(ip) {
			ips = append(ips, ip)
		}
	}
	return ips
}

// IsAbandoned reports whether the Service of a frontend's public IP left it.
func (r *Round) IsAbandoned(f lb.Frontend) bool {
	ip, known := r.ByID(f.PublicIP)
	return known && r.cfg.isOrphan(ip)
}

func (c *Config) isOrphan(ip lb.PublicIP) bool {
	of, tagged := ip.Tags[service.TagService]
	return tagged && of == "" && ManagedOwner(ip, c.ClusterName) != ""
}
