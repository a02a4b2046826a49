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
	// atOnce limits concurrent writes of public IPs. One takes about 3 s, and ARM accepts ten writes per
	// second.
	atOnce = 32
	// Deadline limits the work of a round on public IPs before and after the load balancer: if Azure does not
	// respond, the other Services must continue.
	Deadline = 3 * time.Minute
)

// Write updates the public IPs that Services need before the load balancer is written.
func (r *Round) Write(ctx context.Context) {
	r.carryOut(ctx, inOrder(r.first))
	r.carryOut(ctx, inOrder(r.writes))
}

// Label sets the requested DNS labels of user-provided public IPs. requests are Services that the load balancer
// accepted; a rejected Service must not change a foreign public IP.
func (r *Round) Label(ctx context.Context, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	first, writes := r.labels(ctx, requests)
	r.carryOut(ctx, inOrder(first))
	r.carryOut(ctx, inOrder(writes))
}

// Remove deletes the public IPs made for Services that no longer need them. A shared one gets a tag and is
// deleted after its last user; the tag in Azure survives restarts.
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

// Overtaken reports whether the write of a public IP met 412. Azure changes a public IP itself when a load
// balancer attaches or releases it.
func Overtaken(requests []*Request) bool {
	return slices.ContainsFunc(requests, func(req *Request) bool { return fault.From(req.Err).Overtaken() })
}

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

// carryOut updates and deletes public IPs concurrently. A failure affects only the Services that need the
// public IP.
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
				observed, err := r.cfg.carryOut(w.in(ctx), w, valid)
				mu.Lock()
				defer mu.Unlock()
				r.settle(ctx, w, observed, err)
				return nil
			})
		}
		_ = all.Wait() // each request has its own error
	})
	for _, w := range writes {
		if held != nil {
			r.settle(ctx, w, lb.PublicIP{}, held)
		}
	}
}

// in returns a context that attributes requests to the Services of a write.
func (w *write) in(ctx context.Context) context.Context {
	causes := make([]calls.Cause, len(w.by))
	for i, req := range w.by {
		namespace, name, _ := strings.Cut(req.Service, "/")
		causes[i] = calls.Cause{Kind: "Service", Namespace: namespace, Name: name}
	}
	return calls.For(ctx, causes...)
}

func (c *Config) carryOut(ctx context.Context, w *write, valid func() bool) (observed lb.PublicIP, err error) {
	what := "public IP deleted"
	switch observed = w.next; {
	case !valid():
		return observed, contest.ErrLeaseLost
	case w.deletes:
		err = c.Azure.DeletePublicIP(ctx, w.next)
	default:
		if what = "public IP written"; w.next.Etag == "" {
			what = "public IP created"
		}
		observed, err = c.Azure.PutPublicIP(ctx, w.next)
		if err == nil && !observed.Address.IsValid() {
			err = fmt.Errorf("public IP %s: Azure made it without an address", w.next.ID.Name)
		}
	}
	if err == nil {
		c.Log.InfoContext(ctx, what, "publicIP", observed.ID.Name, "resourceGroup", observed.ID.ResourceGroup,
			"address", observed.Address, "service", observed.Tags[service.TagService])
	}
	return observed, err
}

func (r *Round) settle(ctx context.Context, w *write, observed lb.PublicIP, err error) {
	switch {
	case err == nil:
		r.known[w.next.ID.Key()] = observed
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
