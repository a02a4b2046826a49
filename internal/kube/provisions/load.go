// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"weir.dev/weir/internal/kube/budget"
)

const (
	// maxMemory bounds what all attempts together take to decode objects and to hold them: one decodes at a time, and 32 MiB
	// are left for what the others apply. A namespace that holds more than maxShare decodes nothing.
	maxMemory, maxShare = maxDecoding + 32<<20, 8 << 20
	// maxSmall is how many bytes of objects an attempt holds that do not count: 64 attempts have 4 MiB of them.
	maxSmall = 64 << 10
	// holdTime is how long an attempt holds more than that before it gives it back and waits for its turn again.
	holdTime = time.Minute
	// readTimeout bounds how long sources are read from this cluster, and a chart is rendered, during an attempt's turn.
	readTimeout = 90 * time.Second
	// answerTimeout is how long one connection to a silent target is waited for.
	answerTimeout = time.Minute
	// maxWork bounds the processor time for decoding and rendering, in microseconds per second; workAtOnce is how much of it
	// there is after a pause.
	maxWork, workAtOnce = 200_000, 5_000_000
	// maxWrites bounds the writes to this cluster's API server, per second: of statuses, events and logs, and those that
	// ServiceAccounts make. writesAtOnce is how many there are after a pause.
	maxWrites, writesAtOnce = 20, 100
	// maxLargeAnswers is how many answers of more than 128 KiB or 4,000 values are read at a time: one is 4 MiB of bytes and
	// 30 MiB of values at most.
	maxLargeAnswers = 2
	// largeAnswerTimeout is how long the turn to read one lasts, and decodeTime how long it is kept for decoding.
	largeAnswerTimeout, decodeTime = time.Minute, 2 * time.Second
)

// bounds are what all attempts of a process share.
type bounds struct {
	memory *budget.Budget
	work   *rate.Limiter // in microseconds of a processor
	// reads is one read at a time of what is not decoded object by object: kubeconfigs, and logs of attempts that go on.
	reads *budget.Budget
	// answers are the large answers of targets that are read at a time.
	answers *budget.Budget
	// writes are those to this cluster's API server.
	writes *budget.Rate
}

func newBounds() bounds {
	return bounds{
		memory: budget.New(maxMemory, maxShare), work: rate.NewLimiter(maxWork, workAtOnce), reads: budget.New(1, 1), answers: budget.New(maxLargeAnswers, 0),
		writes: budget.NewRate(maxWrites, writesAtOnce),
	}
}

// charge delays whatever is decoded next by the processor time that was taken.
func (b *bounds) charge(took time.Duration) {
	b.work.ReserveN(time.Now(), int(min(took.Microseconds(), workAtOnce)))
}

// load is the objects of a step while it is applied.
type load struct {
	objects []object
	input   string
	hold    *budget.Hold
	since   time.Time
	large   bool
	read    func(context.Context) (*load, error)
}

// load reads texts and decodes their objects in the turn of the namespace, those that others need first, and hides their
// secrets. A target that does not answer has nothing decoded for it.
func (a *run) load(ctx context.Context, read func(context.Context) ([]text, error)) (*load, error) {
	if err := a.waitForAnswer(ctx); err != nil {
		return nil, err
	}
	hold, err := a.room.memory.Take(ctx, a.p.Namespace, maxDecoding)
	if err != nil {
		return nil, fmt.Errorf("waiting for memory: %w", err)
	}
	l, err := a.loadHeld(ctx, hold, read)
	if err != nil {
		hold.Release()
	}
	return l, err
}

func (a *run) loadHeld(ctx context.Context, hold *budget.Hold, read func(context.Context) ([]text, error)) (*load, error) {
	if err := a.room.work.Wait(ctx); err != nil {
		return nil, fmt.Errorf("waiting for a processor: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	texts, err := read(ctx)
	if err != nil {
		return nil, err
	}
	a.room.charge(decodingTime(texts))
	objects, err := decode(ctx, texts)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(objects, func(x, y object) int {
		switch {
		case x.first() == y.first():
			return 0
		case x.first():
			return -1
		}
		return 1
	})
	hide(a.log, objects)
	var size int64
	for _, o := range objects {
		size += int64(len(o.body))
	}
	l := &load{objects: objects, hold: hold, since: time.Now(), large: size > maxSmall}
	if !l.large {
		size = 0
	}
	hold.Shrink(2 * size) // one is encoded again when it is applied
	return l, nil
}

// drop gives back what objects take while they are waited for.
func (l *load) drop() {
	if !l.large {
		return
	}
	for i := range l.objects {
		l.objects[i].body = nil
	}
	l.hold.Release()
}

// errRecalled ends a request to a target when another namespace waits for the memory of its objects.
var errRecalled = errors.New("another namespace waits for memory")

// turn returns a context that ends with errRecalled when the objects have been held for holdTime and another namespace waits for their
// memory.
func (l *load) turn(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if l.large {
		go func() {
			select {
			case <-l.hold.Recalled():
			case <-ctx.Done():
				return
			}
			timer := time.NewTimer(time.Until(l.since.Add(holdTime)))
			defer timer.Stop()
			select {
			case <-timer.C:
				cancel(errRecalled)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// ensure reads the objects again if they were given back, or have been held for so long that others have a turn.
func (l *load) ensure(ctx context.Context) error {
	if !l.large || l.objects[0].body != nil && time.Since(l.since) < holdTime {
		return nil
	}
	l.drop()
	again, err := l.read(ctx)
	if err != nil {
		return err
	}
	l.hold, l.since = again.hold, time.Now()
	if again.input != l.input || len(again.objects) != len(l.objects) {
		return errors.New("its sources have changed since it was begun")
	}
	for i := range l.objects {
		l.objects[i].body = again.objects[i].body
	}
	return nil
}

var errSilent = errors.New("the target does not answer")

// waitForAnswer waits until the target answers a request for its version. Any answer counts, also that these credentials
// may not read it. Nothing is decoded or held before, so a silent target takes the time of the attempt and no memory.
func (a *run) waitForAnswer(ctx context.Context) error {
	for {
		request, cancel := context.WithTimeoutCause(ctx, answerTimeout, errSilent)
		err := a.target.known.Get().AbsPath("/version").Do(request).Error()
		silent := err != nil && errors.Is(context.Cause(request), errSilent)
		cancel()
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
			return nil
		case !silent || ctx.Err() != nil:
			if err != nil {
				err = fmt.Errorf("target %s does not answer: %w", a.target.name, err)
			}
			return err
		}
	}
}
