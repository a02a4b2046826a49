// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"fmt"
	"sync"
	"time"

	"weir.dev/weir/internal/fault"
)

// What somebody else is just writing is read again after a while: a write takes some
// seconds, and one that is still in progress after minutes may never end.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// mostInProgress bounds what is remembered of things that somebody else is writing.
const mostInProgress = 1024

// CodeUpdating is the code of what somebody is just writing.
const CodeUpdating = "Updating"

// InProgress counts how often something was found that somebody else is just writing. Its
// methods may be called from any goroutine. The zero value has found nothing.
type InProgress struct {
	mu    sync.Mutex // guards what follows
	found map[string]int
}

// Found is the fault of something that somebody else is just writing.
func (p *InProgress) Found(what string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := min(firstPause<<min(max(p.found[what]-2, 0), 10), lastPause)
	if p.found == nil || len(p.found) >= mostInProgress { // some were deleted before anybody saw them free
		p.found = map[string]int{}
	}
	p.found[what]++
	return &fault.Fault{
		Class: fault.Retriable, Code: CodeUpdating, Reason: "conflict", RetryAt: now.Add(pause),
		Err: fmt.Errorf("%s: another write to it is under way", what),
	}
}

// Free notes that nobody is writing something.
func (p *InProgress) Free(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.found, what)
}
