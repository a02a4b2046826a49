// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"slices"
	"sync"

	"weir.dev/weir/internal/turns"
)

// Renderer renders charts one at a time: so one processor, and the memory of one child, is all that they take.
// Namespaces have their turns, however many charts one of them has. The zero value is ready.
type Renderer struct {
	mu      sync.Mutex
	busy    bool
	line    turns.Line
	waiting []*waiter // in the order in which they came
}

// waiter waits for its namespace's turn.
type waiter struct {
	namespace string
	turn      chan struct{} // closed when it has come
}

// Render renders a chart of a namespace when its turn has come.
func (r *Renderer) Render(ctx context.Context, namespace string, request Request) (documents []Document, err error) {
	if err := r.take(ctx, namespace); err != nil {
		return nil, err
	}
	defer r.pass()
	return Render(ctx, request)
}

// take waits for the turn of a namespace. Whoever has it has to pass it on.
func (r *Renderer) take(ctx context.Context, namespace string) error {
	r.mu.Lock()
	if !r.busy {
		r.busy = true
		r.mu.Unlock()
		return nil
	}
	w := &waiter{namespace, make(chan struct{})}
	r.waiting = append(r.waiting, w)
	r.stand()
	r.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		r.leave(w)
		return ctx.Err()
	}
}

// leave gives up waiting, and the turn, if it has come meanwhile.
func (r *Renderer) leave(w *waiter) {
	r.mu.Lock()
	at := slices.Index(r.waiting, w)
	if at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
		r.stand()
	}
	r.mu.Unlock()
	if at < 0 {
		r.pass()
	}
}

// pass passes the turn on to the namespace that is next, and there to who came first.
func (r *Renderer) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.busy = false
		return
	}
	next := 0
	for i, w := range r.waiting {
		if r.line.Turn(w.namespace) < r.line.Turn(r.waiting[next].namespace) {
			next = i
		}
	}
	w := r.waiting[next]
	r.waiting = slices.Delete(r.waiting, next, next+1)
	r.line.Took(w.namespace)
	r.stand()
	close(w.turn)
}

// stand has the namespaces in line that wait.
func (r *Renderer) stand() {
	namespaces := make([]string, len(r.waiting))
	for i, w := range r.waiting {
		namespaces[i] = w.namespace
	}
	r.line.Stand(namespaces)
}
