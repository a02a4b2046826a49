// SPDX-License-Identifier: Apache-2.0

package badlink

import (
	"sync"
	"time"
)

// lane is one direction of the network. What all connections send goes one after the other.
type lane struct {
	mu   sync.Mutex
	free time.Time
}

// pass returns when so many bytes have passed.
func (l *lane) pass(bytes, perSecond int) {
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

// halfASecond is what is carried at a time.
func halfASecond(perSecond int) int { return perSecond / 2 }
