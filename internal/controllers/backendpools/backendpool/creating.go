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
func (p *pendingCreates) beginCreate(name types.NamespacedName) (end func()) {
	done := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = map[types.NamespacedName]chan struct{}{}
	}
	p.pending[name] = done
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pending[name] == done { // otherwise another attempt has begun
			delete(p.pending, name)
		}
		close(done)
	}
}

// waitCreated blocks until no object of that name is being created.
func (p *pendingCreates) waitCreated(ctx context.Context, name types.NamespacedName) error {
	p.mu.Lock()
	done := p.pending[name]
	p.mu.Unlock()
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
