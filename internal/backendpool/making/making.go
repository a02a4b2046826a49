// SPDX-License-Identifier: Apache-2.0

// Package making has those who see an object before the answer to its creation is there wait for that.
package making

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Names are those of objects that are being created. Its methods may be called from any goroutine.
type Names struct {
	mu sync.Mutex
	of map[types.NamespacedName]chan struct{} // closed once the answer is there
}

// Begin takes in a name. Each call of it is followed by one of end, when what was answered is known.
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
		if n.of[name] == done { // else another try has begun
			delete(n.of, name)
		}
		close(done)
	}
}

// Wait returns once no object of a name is being created, as far as is known now.
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
