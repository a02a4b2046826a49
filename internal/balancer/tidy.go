// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// chore is what a public IP still needs when the load balancer is written.
type chore struct {
	ip lb.PublicIP
	// next is what it becomes; nil if it goes.
	next *lb.PublicIP
	// by is whose it is; nil if its Service has gone before.
	by *job
}

// tidy deletes the public IPs that were made for Services which need them no more. One
// that another Service shares is marked, and goes with the last that has it: the mark is
// in Azure, so that it is found by whoever lets go of it, and after a restart.
func (w *worker) tidy(ctx context.Context, jobs []*job, inv *inventory) {
	ctx, cancel := context.WithTimeout(ctx, ipsDeadline)
	defer cancel()
	var chores []chore
	for _, u := range w.untidy(jobs, inv) {
		now := &inventory{known: map[string]lb.PublicIP{}}
		if err := w.list(ctx, now, u.group); err != nil {
			for _, j := range u.jobs {
				inv.failed[j] = err
			}
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(now.known)) {
			if c, ok := w.choreOf(jobs, now.known[key]); ok {
				chores = append(chores, c)
			}
		}
	}
	if len(chores) > 0 {
		w.doAll(ctx, chores, inv)
	}
}

// untidy is a resource group that has to be looked through, and for whom.
type untidy struct {
	group lb.ResourceID
	jobs  []*job
}

func (w *worker) untidy(jobs []*job, inv *inventory) []*untidy {
	var all []*untidy
	add := func(id lb.ResourceID, j *job) {
		g := group(id)
		at := slices.IndexFunc(all, func(u *untidy) bool { return u.group.Key() == g.Key() })
		if at < 0 {
			at = len(all)
			all = append(all, &untidy{group: g})
		}
		if j != nil && !slices.Contains(all[at].jobs, j) {
			all[at].jobs = append(all[at].jobs, j)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(inv.known)) {
		ip := inv.known[key]
		if j := w.leftBy(jobs, ip); j != nil || w.orphan(ip) {
			add(ip.ID, j)
		}
	}
	for _, id := range inv.retired {
		add(id, nil)
	}
	for _, j := range jobs {
		for _, g := range j.groups {
			add(g, j)
		}
	}
	return all
}

// choreOf says what is to be done with a public IP.
func (w *worker) choreOf(jobs []*job, ip lb.PublicIP) (chore, bool) {
	j := w.leftBy(jobs, ip)
	switch {
	case j == nil:
		wanted := slices.ContainsFunc(jobs, func(j *job) bool { return wants(j.Desired, ip) })
		return chore{ip: ip}, w.orphan(ip) && ip.UsedBy == "" && !wanted
	case (equalFold(madeFor(ip, w.cfg.ClusterName), j.Owner) || w.orphan(ip)) && ip.UsedBy == "":
		return chore{ip: ip, by: j}, true
	case j.moves():
		return chore{}, false // what has it may still be the Service's own
	}
	next := left(ip, j, w.cfg.ClusterName)
	return chore{ip: ip, next: &next, by: j}, next.DNSLabel != ip.DNSLabel || !maps.Equal(next.Tags, ip.Tags)
}

// leftBy returns the job whose Service does not want a public IP any more that was made for
// it, or that has its DNS label; nil if there is none.
func (w *worker) leftBy(jobs []*job, ip lb.PublicIP) *job {
	owner, labelled := madeFor(ip, w.cfg.ClusterName), ip.Tags[service.TagDNSLabel]
	for _, j := range jobs {
		if (owner != "" && equalFold(j.Owner, owner) || labelled == j.Service && !w.cfg.foreign(ip)) && !wants(j.Desired, ip) {
			return j
		}
	}
	return nil
}

// foreign reports whether a public IP is another cluster's, which may have a Service of the
// same name.
func (s Settings) foreign(ip lb.PublicIP) bool {
	if of := lb.Tag(ip.Tags, service.TagCluster); of != "" && !equalFold(of, s.ClusterName) {
		return true
	}
	return ip.UsedBy != "" && !slices.ContainsFunc(s.names(), func(name string) bool {
		id := s.Place
		id.Name = name
		return hasPrefixFold(ip.UsedBy, id.String()+"/")
	})
}

// left is what a public IP becomes that stays when a Service leaves it: without its DNS
// label, and marked as nobody's if it was made for it.
func left(ip lb.PublicIP, j *job, cluster string) lb.PublicIP {
	ip.Tags = maps.Clone(ip.Tags)
	if ip.Tags[service.TagDNSLabel] == j.Service {
		ip.DNSLabel = ""
		delete(ip.Tags, service.TagDNSLabel)
	}
	if equalFold(madeFor(ip, cluster), j.Owner) {
		ip.Tags[service.TagService] = ""
	}
	return ip
}

// orphan reports whether a public IP is marked as one that its Service has left.
func (w *worker) orphan(ip lb.PublicIP) bool {
	of, tagged := ip.Tags[service.TagService]
	return tagged && of == "" && madeFor(ip, w.cfg.ClusterName) != ""
}

// doAll does chores side by side.
func (w *worker) doAll(ctx context.Context, chores []chore, inv *inventory) {
	var mu sync.Mutex
	failed := func(c chore, err error) {
		mu.Lock()
		defer mu.Unlock()
		if c.by != nil {
			inv.failed[c.by] = err
			return
		}
		w.cfg.Log.WarnContext(ctx, "a public IP is left whose Service is gone: the next change of a Service tries again",
			"publicIP", c.ip.ID.String(), "err", err)
	}
	err := contest.Leased(ctx, w.cfg.Lease, func(valid func() bool) {
		var side errgroup.Group
		side.SetLimit(ipsAtOnce)
		for _, c := range chores {
			if c.by != nil {
				c.by.changed = true
			}
			side.Go(func() error {
				if err := w.do(ctx, c, valid); err != nil {
					failed(c, err)
				}
				return nil
			})
		}
		_ = side.Wait() // none returns an error
	})
	if err != nil {
		for _, c := range chores {
			failed(c, err)
		}
	}
}

func (w *worker) do(ctx context.Context, c chore, valid func() bool) error {
	switch {
	case c.next != nil:
		_, err := w.put(ctx, *c.next, valid)
		return err
	case !valid():
		return contest.ErrLeaseLost
	}
	err := w.cfg.Azure.DeletePublicIP(ctx, c.ip)
	if err == nil {
		w.cfg.Log.InfoContext(ctx, "public IP deleted", "publicIP", c.ip.ID.Name, "resourceGroup", c.ip.ID.ResourceGroup,
			"address", c.ip.Address, "service", c.ip.Tags[service.TagService])
	}
	return err
}
