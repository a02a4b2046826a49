// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

const (
	// ipsAtOnce bounds the public IPs that are written side by side. One takes about three
	// seconds, and Azure Resource Manager takes ten writes a second.
	ipsAtOnce = 32
	// ipsDeadline bounds all work of a pass on public IPs, before the load balancer and
	// after: where Azure falls silent, the others of the load balancer have to go on.
	ipsDeadline = 3 * time.Minute
)

// inventory is what a pass knows of public IPs.
type inventory struct {
	known map[string]lb.PublicIP // by key
	// of are the keys of the public IPs of a job's frontends; empty for private ones.
	of     map[*job][]string
	failed map[*job]error
	// brought are the public IPs of people that have to change, and for whom: they are
	// written when the load balancer has taken the Services.
	brought map[string][]*job
	// retired are the public IPs of frontends that the pass took away.
	retired []lb.ResourceID
}

// ipWrite is a public IP that has to change, and for whom.
type ipWrite struct {
	next lb.PublicIP
	by   []*job
}

// group is a resource group, without a name.
func group(id lb.ResourceID) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Type: lb.TypePublicIP}
}

// groupsOf are the resource groups where a job has public IPs, or may have some.
func (w *worker) groupsOf(j *job) []lb.ResourceID {
	all := append([]lb.ResourceID{group(w.cfg.PublicIPs)}, j.groups...)
	for _, name := range j.Groups {
		g := group(w.cfg.PublicIPs)
		g.ResourceGroup = name
		all = append(all, g)
	}
	if j.Desired != nil {
		for _, f := range j.Desired.Frontends {
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
	ctx, cancel := context.WithTimeout(ctx, ipsDeadline)
	defer cancel()
	inv := &inventory{known: map[string]lb.PublicIP{}, of: map[*job][]string{}, failed: map[*job]error{}, brought: map[string][]*job{}}
	read := map[string]error{}
	for _, j := range jobs {
		for _, g := range w.groupsOf(j) {
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
	writes, first := map[string]*ipWrite{}, map[string]*ipWrite{}
	for _, j := range jobs {
		if inv.failed[j] == nil && j.Desired != nil && !j.steps[0].leaves {
			w.pick(j, inv, writes)
			w.yield(j, inv, first)
		}
	}
	w.spare(ctx, jobs, inv)
	w.putAll(ctx, inv, first)
	w.putAll(ctx, inv, writes)
	return inv
}

// yield takes the DNS label of a job from the public IP that it had before: no two can
// have the same.
func (w *worker) yield(j *job, inv *inventory, writes map[string]*ipWrite) {
	for _, key := range inv.of[j] {
		if len(inv.brought[key]) > 0 {
			continue // it has no label yet
		}
		for other, ip := range inv.known {
			if key != "" && !slices.Contains(inv.of[j], other) && ip.DNSLabel != "" && ip.DNSLabel == inv.known[key].DNSLabel && ip.Tags[service.TagDNSLabel] == j.Service && !w.cfg.foreign(ip) {
				ip.Tags = maps.Clone(ip.Tags)
				delete(ip.Tags, service.TagDNSLabel)
				ip.DNSLabel = ""
				writes[other] = &ipWrite{next: ip, by: []*job{j}}
			}
		}
	}
}

// pick chooses the public IPs of a job, and notes which have to be written.
func (w *worker) pick(j *job, inv *inventory, writes map[string]*ipWrite) {
	var nexts []lb.PublicIP
	var changes []bool
	for _, f := range j.Desired.Frontends {
		var next lb.PublicIP
		var changed bool
		var err error
		if f.PublicIP != nil {
			next, changed, err = choose(*f.PublicIP, inv.known, j.Service, w.id, w.cfg.Location)
			if err == nil {
				err = w.rests(next)
			}
		}
		if errors.Is(err, errOtherFamily) && !j.replaces {
			// Its name is needed for an address of the other family: first all goes.
			j.replaces = true
			j.steps = append([]step{{on: w.id, leaves: true}}, j.steps...)
			return
		}
		if err != nil {
			inv.failed[j] = err
			return
		}
		nexts, changes = append(nexts, next), append(changes, changed)
	}
	w.leaveAddresses(j, inv, nexts, changes)
	for i, f := range j.Desired.Frontends {
		if f.PublicIP == nil {
			inv.of[j] = append(inv.of[j], "")
			continue
		}
		key := nexts[i].ID.Key()
		inv.of[j] = append(inv.of[j], key)
		switch {
		case theirs(*f.PublicIP) && (changes[i] || len(inv.brought[key]) > 0):
			inv.brought[key] = append(inv.brought[key], j)
			inv.known[key] = nexts[i] // whoever wants another label is told so
		case changes[i]:
			inv.change(writes, nexts[i], j)
		case writes[key] != nil:
			writes[key].by = append(writes[key].by, j)
		}
	}
}

// change notes that a job has a public IP change: the next one that wants it changes this.
func (inv *inventory) change(writes map[string]*ipWrite, next lb.PublicIP, j *job) {
	key := next.ID.Key()
	inv.known[key], j.changed = next, true
	if writes[key] == nil {
		writes[key] = &ipWrite{}
	}
	writes[key].next = next
	writes[key].by = append(writes[key].by, j)
}

// rests returns an error if somebody else is just writing a public IP: Azure would refuse
// every write of the load balancer that refers to it.
func (w *worker) rests(ip lb.PublicIP) error {
	if ip.Provisioning == lb.Updating {
		return w.busy.Found("public IP "+ip.ID.Name, time.Now())
	}
	w.busy.Free("public IP " + ip.ID.Name)
	return nil
}

// putAll writes public IPs side by side. What fails fails for those who want it.
func (w *worker) putAll(ctx context.Context, inv *inventory, writes map[string]*ipWrite) {
	maps.DeleteFunc(writes, func(_ string, wr *ipWrite) bool {
		wr.by = slices.DeleteFunc(wr.by, func(j *job) bool { return inv.failed[j] != nil })
		return len(wr.by) == 0
	})
	if len(writes) == 0 {
		return
	}
	var mu sync.Mutex
	fail := func(wr *ipWrite, err error) {
		for _, j := range wr.by {
			inv.failed[j] = err
		}
	}
	err := contest.Leased(ctx, w.cfg.Lease, func(valid func() bool) {
		var side errgroup.Group
		side.SetLimit(ipsAtOnce)
		for _, key := range slices.Sorted(maps.Keys(writes)) {
			wr := writes[key]
			side.Go(func() error {
				shown, err := w.put(ctx, wr.next, valid)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					fail(wr, err)
					return nil
				}
				inv.known[key] = shown
				return nil
			})
		}
		_ = side.Wait() // none returns an error
	})
	if err != nil {
		for _, wr := range writes {
			fail(wr, err)
		}
	}
}

func (w *worker) put(ctx context.Context, ip lb.PublicIP, valid func() bool) (lb.PublicIP, error) {
	if !valid() {
		return lb.PublicIP{}, contest.ErrLeaseLost
	}
	shown, err := w.cfg.Azure.PutPublicIP(ctx, ip)
	if err == nil && !shown.Address.IsValid() {
		err = fmt.Errorf("public IP %s: Azure made it without an address", ip.ID.Name)
	}
	if err == nil {
		what := "public IP written"
		if ip.Etag == "" {
			what = "public IP created"
		}
		w.cfg.Log.InfoContext(ctx, what, "publicIP", shown.ID.Name, "resourceGroup", shown.ID.ResourceGroup,
			"address", shown.Address, "service", shown.Tags[service.TagService])
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

// met412 reports whether the write of a public IP was refused because somebody else wrote it
// since it was read: Azure does so itself when a load balancer takes it, or lets it go.
func (inv *inventory) met412() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(inv.failed)), func(err error) bool { return fault.From(err).Overtaken() })
}
