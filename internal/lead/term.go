// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrNotLeading is wrapped by every rejection: the request was not sent.
var ErrNotLeading = errors.New("not sent, for this process does not lead")

// Epoch is the period during which one holder has the lease.
type Epoch struct {
	// Lease is the leader election Lease, "namespace/name".
	Lease string
	// Transitions is the Lease's number of holder changes.
	Transitions int
	// Acquired is the time of the last change by the holder's clock, in microseconds. It
	// distinguishes a recreated Lease.
	Acquired int64
}

// String omits the time, because clocks of different machines can't be compared.
func (e Epoch) String() string { return e.Lease + " " + strconv.Itoa(e.Transitions) }

// ParseEpoch parses the output of String.
func ParseEpoch(text string) (Epoch, bool) {
	lease, count, ok := strings.Cut(text, " ")
	n, err := strconv.Atoi(count)
	if !ok || lease == "" || err != nil || n < 0 || strconv.Itoa(n) != count {
		return Epoch{}, false
	}
	return Epoch{Lease: lease, Transitions: n}, true
}

// Before reports whether e certainly ended before later began: same Lease, fewer transitions.
func (e Epoch) Before(later Epoch) bool {
	return e.Lease != "" && e.Lease == later.Lease && e.Transitions < later.Transitions
}

// term is the leadership of this process. Times are readings of one clock.
type term struct {
	epoch Epoch
	// begun is true after the acquisition.
	begun bool
	// asked is when the last successful renewal was requested.
	asked time.Duration
	// over is why the leadership has ended, for good: another process may have written in the
	// meantime.
	over error
}

func covered(requestedAt, now, window time.Duration) bool { return now-requestedAt <= window }

// at ends a lapsed term.
func (t term) at(now, window time.Duration) term {
	if t.begun && t.over == nil && !covered(t.asked, now, window) {
		t.over = fmt.Errorf("no renewal of its lease came through for %s", (now - t.asked).Round(time.Millisecond))
	}
	return t
}

func (t term) renewed(in Epoch, requestedAt, window time.Duration) term {
	t = t.at(requestedAt, window)
	switch {
	case t.over != nil:
	case t.begun && t.epoch != in:
		t.over = fmt.Errorf("another had its lease meanwhile: epoch %s follows %s", in, t.epoch)
	default:
		t.epoch, t.begun, t.asked = in, true, requestedAt
	}
	return t
}

// ended has no effect before the beginning.
func (t term) ended(reason error) term {
	if t.begun && t.over == nil {
		t.over = reason
	}
	return t
}

func (t term) mayWrite() error {
	switch {
	case t.over != nil:
		return fmt.Errorf("%w: %w", ErrNotLeading, t.over)
	case !t.begun:
		return ErrNotLeading
	}
	return nil
}
