// SPDX-License-Identifier: Apache-2.0

package badlink

import (
	"sync"
	"time"
)

// bandwidth is one direction, shared by all connections.
type bandwidth struct {
	mu   sync.Mutex
	free time.Time
}

func (l *bandwidth) waitFor(bytes, perSecond int) {
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(bytes) * time.Second / time.Duration(perSecond))
	wait := l.free.Sub(now)
	l.mu.Unlock()
	time.Sleep(wait)
}

func halfSecondBytes(perSecond int) int { return perSecond / 2 }
