// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"errors"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// takeoverTimeout is how long a leaving Service waits for requests of Services that take over its ports.
const takeoverTimeout = 2 * time.Second

// takeovers delays a Service that leaves until others of its namespace can get its ports in the same write, so that its
// frontend and address are kept. Its methods are safe for concurrent use.
type takeovers struct {
	mu sync.Mutex
	// rejected are the Services with a port that another Service had at their last result, with their load balancers.
	rejected map[string]lb.LoadBalancerKey
	held     []*heldJob
}

type heldJob struct {
	*job
	awaited []string // Services
	timer   *time.Timer
}

// recordResult records whether a Service waits for a port.
func (t *takeovers) recordResult(j *job, err error) {
	if j.CloseOnly {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rejected, j.Service)
	if j.Desired != nil && errors.Is(err, plan.ErrPortTaken) {
		if t.rejected == nil {
			t.rejected = map[string]lb.LoadBalancerKey{}
		}
		t.rejected[j.Service] = j.On.Key()
	}
}

func (t *takeovers) removeService(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rejected, name)
}

// hold holds the job of a Service that leaves a load balancer, until the returned Services have sent requests or release is
// called after a timeout. It returns none if no Service waits for a port there.
func (t *takeovers) hold(j *job, release func()) (awaited []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !j.isLeaving() || j.wasHeld {
		return nil
	}
	for name, on := range t.rejected {
		if name != j.Service && on == j.steps[0].on.Key() && namespaceOf(name) == j.namespace() {
			awaited = append(awaited, name)
		}
	}
	if len(awaited) > 0 {
		j.wasHeld = true
		t.held = append(t.held, &heldJob{j, slices.Clone(awaited), time.AfterFunc(takeoverTimeout, release)})
	}
	return awaited
}

// release returns a held job; nil if it is no longer held.
func (t *takeovers) release(j *job) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.IndexFunc(t.held, func(h *heldJob) bool { return h.job == j })
	if at < 0 {
		return nil
	}
	t.held = slices.Delete(t.held, at, at+1)
	return j
}

// join returns the held jobs that waited only for this one.
func (t *takeovers) join(j *job) (released []*job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = slices.DeleteFunc(t.held, func(h *heldJob) bool {
		if h.steps[0].queueKey() != j.steps[0].queueKey() {
			return false
		}
		h.awaited = slices.DeleteFunc(h.awaited, func(name string) bool { return name == j.Service })
		if len(h.awaited) > 0 {
			return false
		}
		h.timer.Stop()
		released = append(released, h.job)
		return true
	})
	return released
}
