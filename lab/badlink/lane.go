// SPDX-License-Identifier: Apache-2.0

package badlink

import (
	"sync"
	"time"
)

// lane is one direction of the network, shared by all connections.
type lane struct {
	mu   sync.Mutex
	free time.Time
}

// pass blocks until these bytes have passed.
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

// halfASecond returns the bytes transferred in half a second.
func halfASecond(perSecond int) int { return perSecond / 2 }
