// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// loadTimeout limits how long load balancers wait for the Gateways: without the permission to read them, for example, the
// Services are served all the same.
const loadTimeout = 2 * time.Minute

// loading tracks whether the Services of all Gateways are stored after a start.
type loading struct {
	done chan struct{} // closed once they are

	mu sync.Mutex // guards the fields below
	// stored are the Gateways that are stored or need no Service; nil once all are. missing are those of the first list that
	// are not stored, isListed is set once it was read.
	stored   map[types.NamespacedName]bool
	missing  map[types.NamespacedName]bool
	isListed bool
}

func newLoading() *loading {
	return &loading{done: make(chan struct{}), stored: map[types.NamespacedName]bool{}}
}

// setList records all existing Gateways.
func (l *loading) setList(names []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isListed {
		return
	}
	l.isListed, l.missing = true, map[types.NamespacedName]bool{}
	for _, name := range names {
		if !l.stored[name] {
			l.missing[name] = true
		}
	}
	l.closeIfDone()
}

// markStored records that a Gateway is stored, or needs no Service.
func (l *loading) markStored(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stored == nil:
		return
	case !l.isListed:
		l.stored[name] = true
		return
	}
	delete(l.missing, name)
	l.closeIfDone()
}

func (l *loading) closeIfDone() {
	if len(l.missing) == 0 {
		l.stored, l.missing = nil, nil
		close(l.done)
	}
}

// IsLoaded implements services.Gateways.
func (r *Reconciler) IsLoaded() bool {
	select {
	case <-r.loading.done:
		return true
	default:
		return false
	}
}

// AwaitLoaded implements services.Gateways.
func (r *Reconciler) AwaitLoaded(ctx context.Context) {
	timeout := time.NewTimer(loadTimeout)
	defer timeout.Stop()
	select {
	case <-r.loading.done:
	case <-ctx.Done():
	case <-timeout.C:
		r.cfg.Log.ErrorContext(ctx, "Gateways have not been read yet, and load balancers change without them: security rules of Gateways may be removed, and Services may get ports of their addresses. "+
			"Check that Weir may read Gateways, routes and ReferenceGrants (kubectl apply --server-side -k config/gateway-api, or with Helm gatewayAPI.enabled=true)", "waited", loadTimeout.String())
	}
}
