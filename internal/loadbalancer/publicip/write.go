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

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/requestlog"
	"weir.dev/weir/internal/service"
)

const (
	// maxConcurrent limits concurrent writes of public IPs. One takes about 3 s, and ARM accepts ten writes per
	// second.
	maxConcurrent = 32
	// Timeout limits the work of a round on public IPs before and after the load balancer: if Azure does not
	// respond, the other Services must continue.
	Timeout = 3 * time.Minute
)

// WriteRequired updates the public IPs that Services need before the load balancer is written.
func (r *Round) WriteRequired(ctx context.Context) {
	r.applyWrites(ctx, inOrder(r.first))
	r.applyWrites(ctx, inOrder(r.writes))
}

// FinishServices sets the requested DNS labels of user-provided public IPs, then deletes the public IPs made for
// Services that no longer need them. requests are Services that the load balancer accepted; a rejected Service must not
// change a foreign public IP. A shared one gets a tag and is deleted after its last user; the tag in Azure survives
// restarts.
func (r *Round) FinishServices(ctx context.Context, requests []*Request) {
	within, cancel := context.WithTimeout(ctx, Timeout)
	first, writes := r.planLabels(within, requests)
	r.applyWrites(within, inOrder(first))
	r.applyWrites(within, inOrder(writes))
	cancel()
	within, cancel = context.WithTimeout(ctx, Timeout)
	defer cancel()
	removals := r.planRemovals(within, requests)
	for _, w := range removals {
		for _, req := range w.by {
			req.Changed = true
		}
	}
	r.applyRemovals(within, removals)
}

// RemoveOrphans deletes the public IPs that their Services left, except those to keep.
func (r *Round) RemoveOrphans(ctx context.Context, keep func(lb.PublicIP) bool) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	r.applyRemovals(ctx, slices.DeleteFunc(r.planRemovals(ctx, nil), func(w *write) bool { return keep(w.next) }))
}

// IsConflict reports whether the write of a public IP met 412. Azure changes a public IP itself when a load
// balancer attaches or releases it.
func IsConflict(requests []*Request) bool {
	return slices.ContainsFunc(requests, func(req *Request) bool { return armerror.FromError(req.Err).IsPreconditionFailed() })
}

func inOrder(writes map[string]*write) (items []*write) {
	for _, key := range slices.Sorted(maps.Keys(writes)) {
		w := writes[key]
		w.by = slices.DeleteFunc(w.by, func(req *Request) bool { return req.Err != nil })
		if len(w.by) > 0 {
			items = append(items, w)
		}
	}
	return items
}

// applyWrites updates and deletes public IPs concurrently. A failure affects only the Services that need the
// public IP.
func (r *Round) applyWrites(ctx context.Context, writes []*write) {
	if len(writes) == 0 {
		return
	}
	writes = r.failMissingGroups(ctx, writes)
	if unrecorded, err := r.recordGroups(ctx, writes); err != nil {
		writes = r.failGroups(ctx, writes, func(w *write) error {
			if slices.Contains(unrecorded, r.cfg.otherGroup(w.next)) {
				return err
			}
			return nil
		})
	}
	var mu sync.Mutex
	leaseErr := conflict.WithLease(ctx, r.cfg.Lease, func(valid func() bool) {
		var group errgroup.Group
		group.SetLimit(maxConcurrent)
		for _, w := range writes {
			group.Go(func() error {
				observed, err := r.cfg.applyWrite(w.withCauses(ctx), w, valid)
				mu.Lock()
				defer mu.Unlock()
				r.recordResult(ctx, w, observed, err)
				return nil
			})
		}
		_ = group.Wait() // each request has its own error
	})
	for _, w := range writes {
		if leaseErr != nil {
			r.recordResult(ctx, w, lb.PublicIP{}, leaseErr)
		}
	}
}

// failMissingGroups fails the writes in resource groups that do not exist, so that no name of such a group is recorded.
func (r *Round) failMissingGroups(ctx context.Context, writes []*write) []*write {
	return r.failGroups(ctx, writes, func(w *write) error {
		if g := resourceGroup(w.next.ID); r.missingGroups[g.Key()] {
			return fmt.Errorf("resource group %s does not exist: create it, or correct annotation %s", g.ResourceGroup, service.PIPResourceGroup)
		}
		return nil
	})
}

// failGroups fails the writes in other resource groups for which fails returns an error, and returns the others.
func (r *Round) failGroups(ctx context.Context, writes []*write, fails func(*write) error) []*write {
	return slices.DeleteFunc(slices.Clone(writes), func(w *write) bool {
		if w.isDelete || r.cfg.otherGroup(w.next) == "" {
			return false
		}
		err := fails(w)
		if err != nil {
			r.recordResult(ctx, w, lb.PublicIP{}, err)
		}
		return err != nil
	})
}

// withCauses returns a context that attributes requests to the Services of a write.
func (w *write) withCauses(ctx context.Context) context.Context {
	causes := make([]requestlog.Cause, len(w.by))
	for i, req := range w.by {
		namespace, name, _ := strings.Cut(req.Service, "/")
		causes[i] = requestlog.Cause{Kind: "Service", Namespace: namespace, Name: name}
	}
	return requestlog.WithCauses(ctx, causes...)
}

func (c *Config) applyWrite(ctx context.Context, w *write, valid func() bool) (observed lb.PublicIP, err error) {
	text := "public IP deleted"
	switch observed = w.next; {
	case !valid():
		return observed, conflict.ErrLeaseExpired
	case w.isDelete:
		err = c.Azure.DeletePublicIP(ctx, w.next)
	default:
		if text = "public IP written"; w.next.Etag == "" {
			text = "public IP created"
		}
		observed, err = c.Azure.PutPublicIP(ctx, w.next)
		if err == nil && !observed.Address.IsValid() {
			err = fmt.Errorf("public IP %s: Azure made it without an address", w.next.ID.Name)
		}
	}
	if err == nil {
		c.Log.InfoContext(ctx, text, "publicIP", observed.ID.Name, "resourceGroup", observed.ID.ResourceGroup,
			"address", observed.Address, "service", observed.Tags[service.TagService])
	}
	return observed, err
}

func (r *Round) recordResult(ctx context.Context, w *write, observed lb.PublicIP, err error) {
	switch {
	case err == nil:
		r.known[w.next.ID.Key()], w.isDone = observed, true
	case len(w.by) == 0:
		r.cfg.Log.WarnContext(ctx, "a public IP of a deleted Service is left: the next change of a Service retries",
			"publicIP", w.next.ID.String(), "err", err)
	}
	for _, req := range w.by {
		if err != nil {
			req.Err = err
		}
	}
}
