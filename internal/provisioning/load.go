// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxMemory bounds the memory for objects, in bytes: one attempt decodes at a time, and 32 MiB
	// remain for objects being applied. A namespace holding more than maxShare may not decode.
	maxMemory, maxShare = maxDecodeMemory + 32<<20, 8 << 20
	// maxFreeBytes is the size of objects, in bytes, that do not count.
	maxFreeBytes = 64 << 10
	// turnTime is how long an attempt may hold larger objects while others wait.
	turnTime       = time.Minute
	readTimeout    = 90 * time.Second
	connectTimeout = time.Minute
	// maxWork is in microseconds of processor time per second.
	maxWork, workBurst = 200_000, 5_000_000
	// maxWrites bounds writes per second to this cluster's API server: statuses, events, logs and
	// those of ServiceAccounts.
	maxWrites, writeBurst = 20, 100
	// maxLargeResponses bounds concurrent responses above 128 KiB or 4,000 values, which take up to
	// 34 MiB each.
	maxLargeResponses                = 2
	largeResponseTimeout, decodeTime = time.Minute, 2 * time.Second
)

type limits struct {
	memory *FairBudget
	work   *rate.Limiter // in microseconds of processor time
	// serialReads serializes reads that are decoded as a whole: kubeconfigs and logs.
	serialReads    *FairBudget
	largeResponses *FairBudget
	writes         *FairRateLimit
}

func newLimits() limits {
	return limits{
		memory: NewFairBudget(maxMemory, maxShare), work: rate.NewLimiter(maxWork, workBurst), serialReads: NewFairBudget(1, 1), largeResponses: NewFairBudget(maxLargeResponses, 0),
		writes: NewFairRateLimit(maxWrites, writeBurst),
	}
}

// chargeWork delays the next decoding by the processor time spent.
func (l *limits) chargeWork(elapsed time.Duration) {
	l.work.ReserveN(time.Now(), int(min(elapsed.Microseconds(), workBurst)))
}

type loadedStep struct {
	objects  []object
	input    string
	memory   *FairReservation
	loadedAt time.Time
	large    bool
	reload   func(context.Context) (*loadedStep, error)
}

// loadObjects reads and decodes objects in the namespace's turn, sorts prerequisites first and redacts
// secrets in the log.
func (r *run) loadObjects(ctx context.Context, read func(context.Context) ([]text, error)) (*loadedStep, error) {
	if err := r.waitForTarget(ctx); err != nil {
		return nil, err
	}
	hold, err := r.reconciler.memory.Acquire(ctx, r.p.Namespace, maxDecodeMemory)
	if err != nil {
		return nil, fmt.Errorf("waiting for memory: %w", err)
	}
	l, err := r.loadWithMemory(ctx, hold, read)
	if err != nil {
		hold.Release()
	}
	return l, err
}

func (r *run) loadWithMemory(ctx context.Context, hold *FairReservation, read func(context.Context) ([]text, error)) (*loadedStep, error) {
	if err := r.reconciler.work.Wait(ctx); err != nil {
		return nil, fmt.Errorf("waiting for a processor: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	texts, err := read(ctx)
	if err != nil {
		return nil, err
	}
	r.reconciler.chargeWork(decodeTimeFor(texts))
	objects, err := decodeTexts(ctx, texts)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(objects, func(x, y object) int {
		switch {
		case x.isPrerequisite() == y.isPrerequisite():
			return 0
		case x.isPrerequisite():
			return -1
		}
		return 1
	})
	hideSecrets(r.log, objects)
	var size int64
	for _, o := range objects {
		size += int64(len(o.body))
	}
	l := &loadedStep{objects: objects, memory: hold, loadedAt: time.Now(), large: size > maxFreeBytes}
	if !l.large {
		size = 0
	}
	hold.ReduceTo(2 * size) // applying encodes an object a second time
	return l, nil
}

func (l *loadedStep) releaseMemory() {
	if !l.large {
		return
	}
	for i := range l.objects {
		l.objects[i].body = nil
	}
	l.memory.Release()
}

var errPreempt = errors.New("another namespace waits for memory")

// withTurn returns a context canceled with errPreempt once the objects were held for turnTime and
// another namespace waits.
func (l *loadedStep) withTurn(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if l.large {
		go func() {
			select {
			case <-l.memory.PreemptionSignal():
			case <-ctx.Done():
				return
			}
			timer := time.NewTimer(time.Until(l.loadedAt.Add(turnTime)))
			defer timer.Stop()
			select {
			case <-timer.C:
				cancel(errPreempt)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

func (l *loadedStep) ensureLoaded(ctx context.Context) error {
	if !l.large || l.objects[0].body != nil && time.Since(l.loadedAt) < turnTime {
		return nil
	}
	l.releaseMemory()
	reloaded, err := l.reload(ctx)
	if err != nil {
		return err
	}
	l.memory, l.loadedAt = reloaded.memory, time.Now()
	if reloaded.input != l.input || len(reloaded.objects) != len(l.objects) {
		return errors.New("its sources have changed since it was begun")
	}
	for i := range l.objects {
		l.objects[i].body = reloaded.objects[i].body
	}
	return nil
}

var errNoResponse = errors.New("the target does not respond")

// waitForTarget waits until the target responds to /version; 401, 403 and 404 count. Called before
// decoding, so that a silent target holds no memory.
func (r *run) waitForTarget(ctx context.Context) error {
	for {
		request, cancel := context.WithTimeoutCause(ctx, connectTimeout, errNoResponse)
		err := r.target.discovery.Get().AbsPath("/version").Do(request).Error()
		silent := err != nil && errors.Is(context.Cause(request), errNoResponse)
		cancel()
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
			return nil
		case !silent || ctx.Err() != nil:
			if err != nil {
				err = fmt.Errorf("target %s does not respond: %w", r.target.name, err)
			}
			return err
		}
	}
}
