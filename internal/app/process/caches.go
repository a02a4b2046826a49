// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// newCache returns a cache whose WaitForCacheSync ends when stopping is done. Otherwise the manager would
// busy-wait at shutdown until the API server has returned every list.
func newCache(stopping context.Context) cache.NewCacheFunc {
	return func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		c, err := cache.New(cfg, opts)
		return stoppableCache{c, stopping}, err
	}
}

type stoppableCache struct {
	cache.Cache

	stopping context.Context //nolint:containedctx // it is asked, not passed on
}

func (s stoppableCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	return s.Cache.WaitForCacheSync(ctx) || s.stopping.Err() != nil
}
