// SPDX-License-Identifier: Apache-2.0

package ensure

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// ipsAtOnce bounds the public IPs that are written side by side. One takes about three
// seconds, and Azure Resource Manager takes ten writes a second.
const ipsAtOnce = 32

// inventory is what a pass knows of public IPs.
type inventory struct {
	known map[string]lb.PublicIP // by key
	// of are the keys of the public IPs of a job's faces; empty for private ones.
	of     map[*job][]string
	failed map[*job]error
	// retired are the public IPs of frontends that the pass took away.
	retired []lb.ResourceID
}

// group is a resource group, without a name.
func group(id lb.ResourceID) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Type: lb.TypePublicIP}
}

// groups are the resource groups where a job has public IPs, or may have some.
func (w *worker) groups(j *job) []lb.ResourceID {
	all := append([]lb.ResourceID{group(w.cfg.PublicIPs)}, j.groups...)
	if j.Wish != nil {
		for _, f := range j.Wish.Faces {
			if f.PublicIP != nil {
				all = append(all, group(f.PublicIP.ID))
			}
		}
	}
	return all
}

// addresses reads the public IPs of all jobs, one list a resource group, and makes those
// true that they need now.
func (w *worker) addresses(ctx context.Context, jobs []*job) *inventory {
	inv := &inventory{known: map[string]lb.PublicIP{}, of: map[*job][]string{}, failed: map[*job]error{}}
	read := map[string]error{}
	for _, j := range jobs {
		for _, g := range w.groups(j) {
			err, done := read[g.Key()]
			if !done {
				err = w.list(ctx, inv, g)
				read[g.Key()] = err
			}
			if err != nil {
				inv.failed[j] = err
			}
		}
	}
	type write struct {
		next lb.PublicIP
		by   []*job
	}
	writes := map[string]*write{}
	for _, j := range jobs {
		if inv.failed[j] != nil || j.Wish == nil || j.steps[0].leaves {
			continue
		}
		for _, f := range j.Wish.Faces {
			if f.PublicIP == nil {
				inv.of[j] = append(inv.of[j], "")
				continue
			}
			next, changed, err := choose(*f.PublicIP, inv.known, j.Service, w.id, w.cfg.Location)
			if err != nil {
				inv.failed[j] = err
				break
			}
			key := next.ID.Key()
			inv.of[j] = append(inv.of[j], key)
			if changed {
				inv.known[key] = next // the next Service that wants it changes this
				if writes[key] == nil {
					writes[key] = &write{}
				}
				writes[key].next, j.changed = next, true
			}
			if writes[key] != nil {
				writes[key].by = append(writes[key].by, j)
			}
		}
	}
	if len(writes) == 0 {
		return inv
	}
	var mu sync.Mutex
	err := w.leased(ctx, func(valid func() bool) {
		side := newSide(ipsAtOnce)
		for key, wr := range writes {
			side.run(func() {
				shown, err := w.put(ctx, wr.next, valid)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					inv.known[key] = shown
					return
				}
				for _, j := range wr.by {
					inv.failed[j] = fmt.Errorf("public IP %s: %w", wr.next.ID.Name, err)
				}
			})
		}
		side.wait()
	})
	if err != nil {
		for _, wr := range writes {
			for _, j := range wr.by {
				inv.failed[j] = err
			}
		}
	}
	return inv
}

func (w *worker) put(ctx context.Context, ip lb.PublicIP, valid func() bool) (lb.PublicIP, error) {
	if !valid() {
		return lb.PublicIP{}, errLeaseLost
	}
	shown, err := w.cfg.Azure.PutPublicIP(ctx, ip)
	if err == nil && !shown.Address.IsValid() {
		err = fmt.Errorf("Azure made it without an address") //nolint:staticcheck // a name
	}
	return shown, err
}

// list reads the public IPs of a resource group. One that is gone has none.
func (w *worker) list(ctx context.Context, inv *inventory, g lb.ResourceID) error {
	ips, err := w.cfg.Azure.ListPublicIPs(ctx, g.SubscriptionID, g.ResourceGroup)
	if f := fault.From(err); f != nil && f.Class != fault.Stale {
		return fmt.Errorf("public IPs of resource group %s: %w", g.ResourceGroup, err)
	}
	for _, ip := range ips {
		inv.known[ip.ID.Key()] = ip
	}
	return nil
}

// tidy deletes the public IPs that were made for Services which need them no more, or are
// gone. What has one still keeps it.
func (w *worker) tidy(ctx context.Context, jobs []*job, inv *inventory) {
	var groups []lb.ResourceID
	add := func(id lb.ResourceID) {
		if g := group(id); !slices.ContainsFunc(groups, func(o lb.ResourceID) bool { return o.Key() == g.Key() }) {
			groups = append(groups, g)
		}
	}
	for _, ip := range inv.known {
		if j := w.leftBy(jobs, ip); j != nil {
			add(ip.ID)
		}
	}
	for _, id := range inv.retired {
		add(id)
	}
	if len(groups) == 0 {
		return
	}
	now := &inventory{known: map[string]lb.PublicIP{}}
	for _, g := range groups {
		if err := w.list(ctx, now, g); err != nil {
			w.blameAll(jobs, inv, err)
			return
		}
	}
	owners := w.cfg.Cluster.Owners()
	var mu sync.Mutex
	err := w.leased(ctx, func(valid func() bool) {
		side := newSide(ipsAtOnce)
		for _, ip := range now.known {
			j := w.leftBy(jobs, ip)
			owner := madeFor(ip, w.cfg.ClusterName)
			orphan := owner != "" && !containsFold(owners, owner) && slices.ContainsFunc(inv.retired, func(id lb.ResourceID) bool { return id.Key() == ip.ID.Key() })
			if ip.UsedBy != "" || j == nil && !orphan {
				continue
			}
			side.run(func() {
				err := errLeaseLost
				if valid() {
					err = w.cfg.Azure.DeletePublicIP(ctx, ip)
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && j != nil:
					j.changed = true
				case j != nil:
					inv.failed[j] = fmt.Errorf("public IP %s is not deleted yet: %w", ip.ID.Name, err)
				case err != nil:
					w.cfg.Log.WarnContext(ctx, "a public IP whose Service is gone is left", "publicIP", ip.ID.String(), "err", err)
				}
			})
		}
		side.wait()
	})
	if err != nil {
		w.blameAll(jobs, inv, err)
	}
}

func (w *worker) blameAll(jobs []*job, inv *inventory, err error) {
	for _, j := range jobs {
		inv.failed[j] = err
	}
}

// leftBy returns the job for whose Service a public IP was made and which does not want
// it any more; nil if there is none.
func (w *worker) leftBy(jobs []*job, ip lb.PublicIP) *job {
	owner := madeFor(ip, w.cfg.ClusterName)
	if owner == "" {
		return nil
	}
	for _, j := range jobs {
		if equalFold(j.Owner, owner) && !wants(j.Wish, ip) {
			return j
		}
	}
	return nil
}
