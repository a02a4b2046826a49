// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
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
	// atOnce bounds the public IPs that are written side by side. One takes about three
	// seconds, and Azure Resource Manager takes ten writes a second.
	atOnce = 32
	// Deadline bounds all work of a round on public IPs, before the load balancer and
	// after: where Azure falls silent, the others of the load balancer have to go on.
	Deadline = 3 * time.Minute
)

// Write makes those true that the Services need before the load balancer is written.
func (r *Round) Write(ctx context.Context) {
	r.putAll(ctx, r.first)
	r.putAll(ctx, r.writes)
}

// Overtaken reports whether the write of a public IP was refused because somebody else wrote it
// since it was read: Azure does so itself when a load balancer takes it, or lets it go.
func Overtaken(requests []*Request) bool {
	return slices.ContainsFunc(requests, func(req *Request) bool { return fault.From(req.Err).Overtaken() })
}

// putAll writes public IPs side by side. What fails fails for those who want it.
func (r *Round) putAll(ctx context.Context, writes map[string]*write) {
	maps.DeleteFunc(writes, func(_ string, w *write) bool {
		w.by = slices.DeleteFunc(w.by, func(req *Request) bool { return req.Err != nil })
		return len(w.by) == 0
	})
	if len(writes) == 0 {
		return
	}
	var mu sync.Mutex
	err := contest.Leased(ctx, r.cfg.Lease, func(valid func() bool) {
		var all errgroup.Group
		all.SetLimit(atOnce)
		for _, key := range slices.Sorted(maps.Keys(writes)) {
			w := writes[key]
			all.Go(func() error {
				shown, err := r.cfg.put(ctx, w.next, valid)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					w.fail(err)
					return nil
				}
				r.known[key] = shown
				return nil
			})
		}
		_ = all.Wait() // each error is that of its Services
	})
	if err != nil {
		for _, w := range writes {
			w.fail(err)
		}
	}
}

func (w *write) fail(err error) {
	for _, req := range w.by {
		req.Err = err
	}
}

func (c *Config) put(ctx context.Context, ip lb.PublicIP, valid func() bool) (lb.PublicIP, error) {
	if !valid() {
		return lb.PublicIP{}, contest.ErrLeaseLost
	}
	shown, err := c.Azure.PutPublicIP(ctx, ip)
	if err == nil && !shown.Address.IsValid() {
		err = fmt.Errorf("public IP %s: Azure made it without an address", ip.ID.Name)
	}
	if err == nil {
		what := "public IP written"
		if ip.Etag == "" {
			what = "public IP created"
		}
		c.Log.InfoContext(ctx, what, "publicIP", shown.ID.Name, "resourceGroup", shown.ID.ResourceGroup,
			"address", shown.Address, "service", shown.Tags[service.TagService])
	}
	return shown, err
}
