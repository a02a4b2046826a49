// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

const (
	// atOnce bounds the public IPs that are written side by side. One takes about three
	// seconds, and Azure Resource Manager takes ten writes a second.
	atOnce = 32
	// Deadline bounds all work of a round on public IPs, before the load balancer and
	// after: where Azure falls silent, the others of the load balancer have to go on.
	Deadline = 3 * time.Minute
)

// Write makes those true that the Services need before the load balancer is written.
func (r *Round) Write(ctx context.Context) {
	r.carryOut(ctx, inOrder(r.first))
	r.carryOut(ctx, inOrder(r.writes))
}

// Label gives the public IPs that people brought the DNS labels that Services ask for: those
// of these requests alone, whose load balancer has what they want. One that is refused there
// changes nothing of what is not the cluster's.
func (r *Round) Label(ctx context.Context, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	first, writes := r.labels(ctx, requests)
	r.carryOut(ctx, inOrder(first))
	r.carryOut(ctx, inOrder(writes))
}

// Remove deletes the public IPs that were made for Services which need them no more. One
// that another Service shares is marked, and goes with the last that has it: the mark is
// in Azure, so that it is found by whoever lets go of it, and after a restart.
func (r *Round) Remove(ctx context.Context, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	all := r.removals(ctx, requests)
	for _, w := range all {
		for _, req := range w.by {
			req.Changed = true
		}
	}
	r.carryOut(ctx, all)
}

// Overtaken reports whether the write of a public IP was refused because somebody else wrote it
// since it was read: Azure does so itself when a load balancer takes it, or lets it go.
func Overtaken(requests []*Request) bool {
	return slices.ContainsFunc(requests, func(req *Request) bool { return fault.From(req.Err).Overtaken() })
}

// inOrder are writes by their keys, but for those that nobody wants any more.
func inOrder(writes map[string]*write) (all []*write) {
	for _, key := range slices.Sorted(maps.Keys(writes)) {
		w := writes[key]
		w.by = slices.DeleteFunc(w.by, func(req *Request) bool { return req.Err != nil })
		if len(w.by) > 0 {
			all = append(all, w)
		}
	}
	return all
}

// carryOut writes and deletes public IPs side by side. What fails fails for those who want it.
func (r *Round) carryOut(ctx context.Context, writes []*write) {
	if len(writes) == 0 {
		return
	}
	var mu sync.Mutex
	held := contest.Leased(ctx, r.cfg.Lease, func(valid func() bool) {
		var all errgroup.Group
		all.SetLimit(atOnce)
		for _, w := range writes {
			all.Go(func() error {
				shown, err := r.cfg.carryOut(w.in(ctx), w, valid)
				mu.Lock()
				defer mu.Unlock()
				r.settle(ctx, w, shown, err)
				return nil
			})
		}
		_ = all.Wait() // each error is that of its Services
	})
	for _, w := range writes {
		if held != nil {
			r.settle(ctx, w, lb.PublicIP{}, held)
		}
	}
}

// in returns a context whose requests are made for the Services of a write.
func (w *write) in(ctx context.Context) context.Context {
	causes := make([]calls.Cause, len(w.by))
	for i, req := range w.by {
		namespace, name, _ := strings.Cut(req.Service, "/")
		causes[i] = calls.Cause{Kind: "Service", Namespace: namespace, Name: name}
	}
	return calls.For(ctx, causes...)
}

// carryOut writes a public IP, or deletes it.
func (c *Config) carryOut(ctx context.Context, w *write, valid func() bool) (shown lb.PublicIP, err error) {
	what := "public IP deleted"
	switch shown = w.next; {
	case !valid():
		return shown, contest.ErrLeaseLost
	case w.deletes:
		err = c.Azure.DeletePublicIP(ctx, w.next)
	default:
		if what = "public IP written"; w.next.Etag == "" {
			what = "public IP created"
		}
		shown, err = c.Azure.PutPublicIP(ctx, w.next)
		if err == nil && !shown.Address.IsValid() {
			err = fmt.Errorf("public IP %s: Azure made it without an address", w.next.ID.Name)
		}
	}
	if err == nil {
		c.Log.InfoContext(ctx, what, "publicIP", shown.ID.Name, "resourceGroup", shown.ID.ResourceGroup,
			"address", shown.Address, "service", shown.Tags[service.TagService])
	}
	return shown, err
}

// settle notes what Azure shows of a public IP that was written, or why it failed.
func (r *Round) settle(ctx context.Context, w *write, shown lb.PublicIP, err error) {
	switch {
	case err == nil:
		r.known[w.next.ID.Key()] = shown
	case len(w.by) == 0:
		r.cfg.Log.WarnContext(ctx, "a public IP is left whose Service is gone: the next change of a Service tries again",
			"publicIP", w.next.ID.String(), "err", err)
	}
	for _, req := range w.by {
		if err != nil {
			req.Err = err
		}
	}
}
