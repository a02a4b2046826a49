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

func (b *bandwidth) waitFor(bytes, perSecond int) {
	b.mu.Lock()
	now := time.Now()
	if b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(time.Duration(bytes) * time.Second / time.Duration(perSecond))
	wait := b.free.Sub(now)
	b.mu.Unlock()
	time.Sleep(wait)
}

func halfSecondBytes(perSecond int) int { return perSecond / 2 }
