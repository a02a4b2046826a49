// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/provision"
)

// Bounds for concurrent attempts, in total and per namespace. Half of the slots are reserved for
// namespaces without an attempt, because an attempt may wait a day for its network.
const (
	mostAttempts    = 64
	mostInNamespace = 4
	mostShared      = mostAttempts / 2 // above this, a namespace gets one attempt only
)

type ended struct {
	v1alpha1.ProvisionAttempt
	outcome provision.Outcome
	policy  provision.Policy
}

func (e *ended) why() string {
	if e.Step != "" {
		return "step " + e.Step + ": " + e.Message
	}
	return e.Message
}

// underway is an attempt that holds a slot.
type underway struct {
	uid    types.UID
	cancel context.CancelFunc
	// ended is set from the end of the attempt until its result is recorded.
	ended *ended
}

// attempts tracks the running attempts of this process. Safe for concurrent use.
type attempts struct {
	requeue func(types.NamespacedName)
	runs    sync.WaitGroup

	mu  sync.Mutex
	ctx context.Context //nolint:containedctx // of the process as the leader; nil while it leads nothing
	all map[types.NamespacedName]*underway
	// in counts them by namespace; the other holds the Provisions without a slot.
	in      map[string]int
	refused map[types.NamespacedName]bool

	results [3]atomic.Uint64 // in the order of Results
}

func newAttempts(requeue func(types.NamespacedName)) *attempts {
	return &attempts{requeue: requeue, all: map[types.NamespacedName]*underway{}, in: map[string]int{}, refused: map[types.NamespacedName]bool{}}
}

// run allows attempts until ctx is done, then waits for them.
func (a *attempts) run(ctx context.Context) {
	a.mu.Lock()
	a.ctx = ctx
	a.mu.Unlock()
	a.again()
	<-ctx.Done()
	a.mu.Lock()
	a.ctx = nil
	a.mu.Unlock()
	a.runs.Wait()
}

type looked struct {
	work, busy bool
	ended      *ended
	knocks     provision.Knocks
	// wanted is set for a cached Provision and nil for a live one.
	wanted *view.Wanted
}

// look returns the state, and whether an attempt could start.
func (a *attempts) look(p *v1alpha1.Provision) looked {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.all[key]; u != nil && u.uid == p.UID {
		return looked{work: u.cancel != nil && u.ended == nil, busy: u.cancel != nil, ended: u.ended}
	}
	is := looked{busy: !a.fits(key)}
	if is.busy {
		a.refused[key] = true
	}
	return is
}

func (a *attempts) fits(key types.NamespacedName) bool {
	all, of := len(a.all), a.in[key.Namespace]
	return a.ctx != nil && a.all[key] == nil && (of == 0 && all < mostAttempts || of < mostInNamespace && all < mostShared)
}

func (a *attempts) reserve(key types.NamespacedName, uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.fits(key) {
		if a.all[key] == nil {
			a.refused[key] = true
		}
		return false
	}
	a.all[key] = &underway{uid: uid}
	a.in[key.Namespace]++
	delete(a.refused, key)
	return true
}

func (a *attempts) release(key types.NamespacedName) {
	a.mu.Lock()
	if a.all[key] != nil {
		delete(a.all, key)
		if a.in[key.Namespace]--; a.in[key.Namespace] == 0 {
			delete(a.in, key.Namespace)
		}
	}
	a.mu.Unlock()
	a.again()
}

func (a *attempts) again() {
	a.mu.Lock()
	waiting := a.refused
	a.refused = map[types.NamespacedName]bool{}
	a.mu.Unlock()
	for key := range waiting {
		a.requeue(key)
	}
}

// start runs an attempt in its reserved slot. The next reconcile records the result.
func (a *attempts) start(key types.NamespacedName, attempt func(context.Context) *ended) {
	a.mu.Lock()
	u := a.all[key]
	if a.ctx == nil || u == nil {
		a.mu.Unlock()
		a.release(key)
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
			a.release(key)
			return
		}
		a.mu.Lock()
		u.ended = end
		a.mu.Unlock()
		a.requeue(key)
	}()
}

// aside runs a function in the background if this process leads.
func (a *attempts) aside(run func(context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil {
		return false
	}
	ctx := a.ctx
	a.runs.Go(func() { run(ctx) })
	return true
}

func (a *attempts) settled(key types.NamespacedName, e *ended) {
	a.count(e.outcome.Result)
	a.release(key)
}

// abandon cancels the attempt of a deleted Provision, that is, of any UID except but.
func (a *attempts) abandon(key types.NamespacedName, but types.UID) {
	a.mu.Lock()
	u := a.all[key]
	isOther := u != nil && u.uid != but
	done := isOther && u.ended != nil
	if isOther && u.cancel != nil {
		u.cancel()
	}
	delete(a.refused, key)
	a.mu.Unlock()
	if done {
		a.release(key)
	}
}
