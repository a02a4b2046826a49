// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// newCache makes the manager's cache, which nobody waits for any more once the process has to
// stop: the manager would ask whether it may go on without a pause, and with all of a processor,
// until the API server has listed everything.
func newCache(stopping context.Context) cache.NewCacheFunc {
	return func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		c, err := cache.New(cfg, opts)
		return awaited{c, stopping}, err
	}
}

// awaited is a cache that is waited for until the process has to stop.
type awaited struct {
	cache.Cache

	stopping context.Context //nolint:containedctx // it is asked, not passed on
}

// WaitForCacheSync implements cache.Informers.
func (a awaited) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.stopping, cancel)()
	return a.Cache.WaitForCacheSync(ctx) || a.stopping.Err() != nil
}
