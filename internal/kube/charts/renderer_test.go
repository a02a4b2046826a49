// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// cooks has charts of namespaces rendered for a second each, in a Renderer, and keeps the order.
type cooks struct {
	Renderer

	all   sync.WaitGroup
	mu    sync.Mutex
	order []string
	now   int
	most  int
}

func (c *cooks) add(ctx context.Context, namespace string) {
	c.all.Go(func() {
		if c.take(ctx, namespace) != nil {
			return
		}
		c.mu.Lock()
		c.order = append(c.order, namespace)
		c.now++
		c.most = max(c.most, c.now)
		c.mu.Unlock()
		time.Sleep(time.Second)
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
		c.pass()
	})
	synctest.Wait()
}

// One is rendered at a time. A namespace with a thousand charts has one turn, as has each other that waits: nobody
// waits for more of them than that.
func TestNamespacesHaveTheirTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cooks{}
		for range 1000 {
			c.add(t.Context(), "many")
		}
		for range 3 {
			c.add(t.Context(), "few")
		}
		c.add(t.Context(), "one")
		c.all.Wait()
		if got := strings.Join(c.order[:9], " "); got != "many many few one many few many few many" || len(c.order) != 1004 || c.most != 1 {
			t.Errorf("%d are rendered, %d at a time, in the order %s …", len(c.order), c.most, got)
		}
	})
}

// Who does not wait any more takes nobody's turn along, whenever that is.
func TestATurnThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cooks{}
		ctx, gone := context.WithCancel(t.Context())
		c.add(t.Context(), "first")
		c.add(ctx, "gone")
		c.add(t.Context(), "last")
		gone()
		c.all.Wait()
		if !slices.Equal(c.order, []string{"first", "last"}) || c.busy || len(c.waiting) > 0 {
			t.Errorf("rendered %v, busy %t, %d wait", c.order, c.busy, len(c.waiting))
		}
		w := &waiter{"late", make(chan struct{})} // its turn comes as it leaves
		c.busy = true
		c.leave(w)
		if c.busy {
			t.Error("its turn is lost")
		}
	})
}
