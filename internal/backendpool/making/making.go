// SPDX-License-Identifier: Apache-2.0

// Package making makes readers of an object wait until its create request has returned.
package making

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Names tracks objects that are being created. It is safe for concurrent use.
type Names struct {
	mu sync.Mutex
	of map[types.NamespacedName]chan struct{} // closed when the request returns
}

// Begin adds a name. The caller must call end when the result is known.
func (n *Names) Begin(name types.NamespacedName) (end func()) {
	done := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[types.NamespacedName]chan struct{}{}
	}
	n.of[name] = done
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.of[name] == done { // otherwise another attempt has begun
			delete(n.of, name)
		}
		close(done)
	}
}

// Wait blocks until no object of that name is being created.
func (n *Names) Wait(ctx context.Context, name types.NamespacedName) error {
	n.mu.Lock()
	done := n.of[name]
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
