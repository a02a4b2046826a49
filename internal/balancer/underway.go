// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
	"time"

	"weir.dev/weir/internal/fault"
)

// What somebody else is just writing is read again after a while: a write takes some
// seconds, and one that is still under way after minutes may never end.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// mostBusy bounds what is remembered of things that somebody else is writing.
const mostBusy = 1024

// CodeUpdating is the code of what somebody is just writing.
const CodeUpdating = "Updating"

// underWay is the fault of something that somebody else is just writing.
func (b *Balancers) underWay(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	pause := min(firstPause<<min(max(b.busy[what]-2, 0), 10), lastPause)
	if len(b.busy) >= mostBusy { // some were deleted before anybody saw them free
		clear(b.busy)
	}
	b.busy[what]++
	return &fault.Fault{
		Class: fault.Retriable, Code: CodeUpdating, Reason: "conflict", RetryAt: time.Now().Add(pause),
		Err: fmt.Errorf("%s: another write to it is under way", what),
	}
}

// isFree notes that nobody is writing something.
func (b *Balancers) isFree(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.busy, what)
}
