// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/objects"
	"weir.dev/weir/internal/provisioning/policy"
)

// Bounds for concurrent attempts, in total and per namespace. Half of the slots are reserved for
// namespaces without an attempt, because an attempt may wait a day for its network.
const (
	maxAttempts     = 64
	maxPerNamespace = 4
	maxShared       = maxAttempts / 2 // above this, a namespace gets one attempt only
)

type attemptResult struct {
	v1alpha1.ProvisionAttempt
	outcome policy.Outcome
	policy  policy.Policy
}

func (a *attemptResult) failureMessage() string {
	if a.Step != "" {
		return "step " + a.Step + ": " + a.Message
	}
	return a.Message
}

// runningAttempt is an attempt that holds a slot.
type runningAttempt struct {
	uid    types.UID
	cancel context.CancelFunc
	// result is set from the end of the attempt until its result is recorded.
	result *attemptResult
}

// attemptTracker tracks the running attempts of this process. Safe for concurrent use.
type attemptTracker struct {
	requeue func(types.NamespacedName)
	runs    sync.WaitGroup

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // of the process as the leader; nil while it leads nothing
	running map[types.NamespacedName]*runningAttempt
	// perNamespace counts them by namespace; the other holds the Provisions without a slot.
	perNamespace map[string]int
	waiting      map[types.NamespacedName]bool

	results [3]atomic.Uint64 // in the order of Results
}

func newAttemptTracker(requeue func(types.NamespacedName)) *attemptTracker {
	return &attemptTracker{requeue: requeue, running: map[types.NamespacedName]*runningAttempt{}, perNamespace: map[string]int{}, waiting: map[types.NamespacedName]bool{}}
}

// run allows attempts until ctx is done, then waits for them.
func (a *attemptTracker) run(ctx context.Context) {
	a.mu.Lock()
	a.ctx = ctx
	a.mu.Unlock()
	a.requeueWaiting()
	<-ctx.Done()
	a.mu.Lock()
	a.ctx = nil
	a.mu.Unlock()
	a.runs.Wait()
}

type attemptState struct {
	running, busy bool
	result        *attemptResult
	probes        policy.ProbeState
	// desired is set for a cached Provision and nil for a live one.
	desired *objects.Wanted
}

// stateFor returns the state, and whether an attempt could start.
func (a *attemptTracker) stateFor(p *v1alpha1.Provision) attemptState {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.running[key]; u != nil && u.uid == p.UID {
		return attemptState{running: u.cancel != nil && u.result == nil, busy: u.cancel != nil, result: u.result}
	}
	state := attemptState{busy: !a.hasCapacity(key)}
	if state.busy {
		a.waiting[key] = true
	}
	return state
}

func (a *attemptTracker) hasCapacity(key types.NamespacedName) bool {
	running, of := len(a.running), a.perNamespace[key.Namespace]
	return a.ctx != nil && a.running[key] == nil && (of == 0 && running < maxAttempts || of < maxPerNamespace && running < maxShared)
}

func (a *attemptTracker) reserveSlot(key types.NamespacedName, uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.hasCapacity(key) {
		if a.running[key] == nil {
			a.waiting[key] = true
		}
		return false
	}
	a.running[key] = &runningAttempt{uid: uid}
	a.perNamespace[key.Namespace]++
	delete(a.waiting, key)
	return true
}

func (a *attemptTracker) releaseSlot(key types.NamespacedName) {
	a.mu.Lock()
	if a.running[key] != nil {
		delete(a.running, key)
		if a.perNamespace[key.Namespace]--; a.perNamespace[key.Namespace] == 0 {
			delete(a.perNamespace, key.Namespace)
		}
	}
	a.mu.Unlock()
	a.requeueWaiting()
}

func (a *attemptTracker) requeueWaiting() {
	a.mu.Lock()
	waiting := a.waiting
	a.waiting = map[types.NamespacedName]bool{}
	a.mu.Unlock()
	for key := range waiting {
		a.requeue(key)
	}
}

// startAttempt runs an attempt in its reserved slot. The next reconcile records the result.
func (a *attemptTracker) startAttempt(key types.NamespacedName, attempt func(context.Context) *attemptResult) {
	a.mu.Lock()
	u := a.running[key]
	if a.ctx == nil || u == nil {
		a.mu.Unlock()
		a.releaseSlot(key)
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	u.cancel = cancel
	a.runs.Add(1)
	a.mu.Unlock()
	go func() {
		defer a.runs.Done()
		defer cancel()
		end := attempt(ctx)
		if end == nil {
			a.releaseSlot(key)
			return
		}
		a.mu.Lock()
		u.result = end
		a.mu.Unlock()
		a.requeue(key)
	}()
}

// runBackground runs a function in the background if this process leads.
func (a *attemptTracker) runBackground(run func(context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil {
		return false
	}
	ctx := a.ctx
	a.runs.Go(func() { run(ctx) })
	return true
}

func (a *attemptTracker) completeAttempt(key types.NamespacedName, e *attemptResult) {
	a.countResult(e.outcome.Result)
	a.releaseSlot(key)
}

// cancelStale cancels the attempt of a deleted Provision, that is, of any UID other than except.
func (a *attemptTracker) cancelStale(key types.NamespacedName, except types.UID) {
	a.mu.Lock()
	u := a.running[key]
	isOther := u != nil && u.uid != except
	done := isOther && u.result != nil
	if isOther && u.cancel != nil {
		u.cancel()
	}
	delete(a.waiting, key)
	a.mu.Unlock()
	if done {
		a.releaseSlot(key)
	}
}
