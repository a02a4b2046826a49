// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrNotLeader is wrapped by every rejection: the request was not sent.
var ErrNotLeader = errors.New("not sent, for this process does not lead")

// Epoch is the period during which one holder has the lease.
type Epoch struct {
	// Lease is the leader election Lease, "namespace/name".
	Lease string
	// TransitionCount is the Lease's number of holder changes.
	TransitionCount int
	// AcquireTime is the time of the last change by the holder's clock, in microseconds. It
	// distinguishes a recreated Lease.
	AcquireTime int64
}

// String omits the time, because clocks of different machines can't be compared.
func (e Epoch) String() string { return e.Lease + " " + strconv.Itoa(e.TransitionCount) }

// ParseEpoch parses the output of String.
func ParseEpoch(text string) (Epoch, bool) {
	lease, count, ok := strings.Cut(text, " ")
	n, err := strconv.Atoi(count)
	if !ok || lease == "" || err != nil || n < 0 || strconv.Itoa(n) != count {
		return Epoch{}, false
	}
	return Epoch{Lease: lease, TransitionCount: n}, true
}

// Before reports whether e certainly ended before later began: same Lease, fewer transitions.
func (e Epoch) Before(later Epoch) bool {
	return e.Lease != "" && e.Lease == later.Lease && e.TransitionCount < later.TransitionCount
}

// term is the leadership of this process. Times are readings of one clock.
type term struct {
	epoch Epoch
	// started is true after the acquisition.
	started bool
	// lastRenew is when the last successful renewal was requested.
	lastRenew time.Duration
	// endReason is why the leadership has ended, for good: another process may have written in the
	// meantime.
	endReason error
}

func isCovered(requestedAt, now, window time.Duration) bool { return now-requestedAt <= window }

// updateAt ends a lapsed term.
func (t term) updateAt(now, window time.Duration) term {
	if t.started && t.endReason == nil && !isCovered(t.lastRenew, now, window) {
		t.endReason = fmt.Errorf("no renewal of its lease came through for %s", (now - t.lastRenew).Round(time.Millisecond))
	}
	return t
}

func (t term) withRenew(in Epoch, requestedAt, window time.Duration) term {
	t = t.updateAt(requestedAt, window)
	switch {
	case t.endReason != nil:
	case t.started && t.epoch != in:
		t.endReason = fmt.Errorf("another had its lease meanwhile: epoch %s follows %s", in, t.epoch)
	default:
		t.epoch, t.started, t.lastRenew = in, true, requestedAt
	}
	return t
}

// withEnd has no effect before the beginning.
func (t term) withEnd(reason error) term {
	if t.started && t.endReason == nil {
		t.endReason = reason
	}
	return t
}

func (t term) checkWrite() error {
	switch {
	case t.endReason != nil:
		return fmt.Errorf("%w: %w", ErrNotLeader, t.endReason)
	case !t.started:
		return ErrNotLeader
	}
	return nil
}
