// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrNotLeading is in the chain of every refusal: the request did not leave.
var ErrNotLeading = errors.New("not sent, for this process does not lead")

// Epoch is one lead: the time for which a lease stayed in the same hands.
type Epoch struct {
	// Lease is the namespace and name of the leader's Lease.
	Lease string
	// Transitions is how often the Lease has changed hands.
	Transitions int
	// Acquired is when it did so last, by its holder's clock, in microseconds. It tells
	// apart a Lease that was deleted and made anew.
	Acquired int64
}

// String returns an epoch as ParseEpoch reads it. When the lead was acquired is left out:
// clocks of different machines are not compared.
func (e Epoch) String() string { return e.Lease + " " + strconv.Itoa(e.Transitions) }

// ParseEpoch reads what String wrote. It reports false for anything else.
func ParseEpoch(text string) (Epoch, bool) {
	lease, count, ok := strings.Cut(text, " ")
	n, err := strconv.Atoi(count)
	if !ok || lease == "" || err != nil || n < 0 || strconv.Itoa(n) != count {
		return Epoch{}, false
	}
	return Epoch{Lease: lease, Transitions: n}, true
}

// Before reports whether an epoch has ended for certain once later has begun: both are of
// the same Lease, which has changed hands in between.
func (e Epoch) Before(later Epoch) bool {
	return e.Lease != "" && e.Lease == later.Lease && e.Transitions < later.Transitions
}

// term is what a process knows of its own lead. Its times are readings of one clock.
type term struct {
	epoch Epoch
	// begun is true from the first renewal on, which is the acquisition.
	begun bool
	// asked is when the last renewal that succeeded was asked for.
	asked time.Duration
	// over is why the lead has ended. Then it has for good: somebody else may have led
	// meanwhile, and what this process remembers may be older than what they wrote.
	over error
}

// covered reports whether a renewal that was asked for then allows a write now.
func covered(asked, now, window time.Duration) bool { return now-asked <= window }

// at returns the term as it stands now: once it has lapsed, it is over.
func (t term) at(now, window time.Duration) term {
	if t.begun && t.over == nil && !covered(t.asked, now, window) {
		t.over = fmt.Errorf("no renewal of its lease came through for %s", (now - t.asked).Round(time.Millisecond))
	}
	return t
}

// renewed returns the term after a renewal that was asked for then has succeeded.
func (t term) renewed(in Epoch, asked, window time.Duration) term {
	t = t.at(asked, window)
	switch {
	case t.over != nil:
	case t.begun && t.epoch != in:
		t.over = fmt.Errorf("another had its lease meanwhile: epoch %s follows %s", in, t.epoch)
	default:
		t.epoch, t.begun, t.asked = in, true, asked
	}
	return t
}

// ended returns the term after its end, if it has begun.
func (t term) ended(why error) term {
	if t.begun && t.over == nil {
		t.over = why
	}
	return t
}

// mayWrite returns nil if a write may leave.
func (t term) mayWrite() error {
	switch {
	case t.over != nil:
		return fmt.Errorf("%w: %w", ErrNotLeading, t.over)
	case !t.begun:
		return ErrNotLeading
	}
	return nil
}
