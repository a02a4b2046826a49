// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// pendingCreates makes readers of an object wait until its create request has returned. It is safe for
// concurrent use.
type pendingCreates struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]chan struct{} // closed when the request returns
}

// beginCreate adds a name. The caller must call end when the result is known.
func (n *pendingCreates) beginCreate(name types.NamespacedName) (end func()) {
	done := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pending == nil {
		n.pending = map[types.NamespacedName]chan struct{}{}
	}
	n.pending[name] = done
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.pending[name] == done { // otherwise another attempt has begun
			delete(n.pending, name)
		}
		close(done)
	}
}

// waitCreated blocks until no object of that name is being created.
func (n *pendingCreates) waitCreated(ctx context.Context, name types.NamespacedName) error {
	n.mu.Lock()
	done := n.pending[name]
	n.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
