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
	// maxMemory bounds the memory for objects, in bytes: one attempt decodes at a time, and 32 MiB
	// remain for objects being applied. A namespace holding more than maxShare may not decode.
	maxMemory, maxShare = maxDecoding + 32<<20, 8 << 20
	// maxSmall is the size of objects, in bytes, that do not count.
	maxSmall = 64 << 10
	// holdTime is how long an attempt may hold larger objects while others wait.
	holdTime      = time.Minute
	readTimeout   = 90 * time.Second
	answerTimeout = time.Minute
	// maxWork is in microseconds of processor time per second.
	maxWork, workAtOnce = 200_000, 5_000_000
	// maxWrites bounds writes per second to this cluster's API server: statuses, events, logs and
	// those of ServiceAccounts.
	maxWrites, writesAtOnce = 20, 100
	// maxLargeAnswers bounds concurrent responses above 128 KiB or 4,000 values, which take up to
	// 34 MiB each.
	maxLargeAnswers                = 2
	largeAnswerTimeout, decodeTime = time.Minute, 2 * time.Second
)

type bounds struct {
	memory *budget.Budget
	work   *rate.Limiter // in microseconds of processor time
	// reads serializes reads that are decoded as a whole: kubeconfigs and logs.
	reads   *budget.Budget
	answers *budget.Budget
	writes  *budget.Rate
}

func newBounds() bounds {
	return bounds{
		memory: budget.New(maxMemory, maxShare), work: rate.NewLimiter(maxWork, workAtOnce), reads: budget.New(1, 1), answers: budget.New(maxLargeAnswers, 0),
		writes: budget.NewRate(maxWrites, writesAtOnce),
	}
}

// charge delays the next decoding by the processor time spent.
func (b *bounds) charge(took time.Duration) {
	b.work.ReserveN(time.Now(), int(min(took.Microseconds(), workAtOnce)))
}

type load struct {
	objects []object
	input   string
	hold    *budget.Hold
	since   time.Time
	large   bool
	read    func(context.Context) (*load, error)
}

// load reads and decodes objects in the namespace's turn, sorts prerequisites first and redacts
// secrets in the log.
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
	hold.Shrink(2 * size) // applying encodes an object a second time
	return l, nil
}

func (l *load) drop() {
	if !l.large {
		return
	}
	for i := range l.objects {
		l.objects[i].body = nil
	}
	l.hold.Release()
}

var errRecalled = errors.New("another namespace waits for memory")

// turn returns a context canceled with errRecalled once the objects were held for holdTime and
// another namespace waits.
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

// waitForAnswer waits until the target responds to /version; 401, 403 and 404 count. Called before
// decoding, so that a silent target holds no memory.
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
