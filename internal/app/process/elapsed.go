// SPDX-License-Identifier: Apache-2.0

package process

import (
	"sync"
	"time"
)

// newElapsedClock returns a monotonic clock that adds, per reading, the larger advance of two clocks. Either may
// stand still: sinceStart while a hypervisor stops the machine, wall until it is set. A forward jump of wall
// at worst ends leadership early.
func newElapsedClock(sinceStart func() time.Duration, wall func() time.Time) func() time.Duration {
	var mu sync.Mutex
	var passed time.Duration
	lastStart, lastWall := sinceStart(), wall().Round(0)
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		nowStart, nowWall := sinceStart(), wall().Round(0)
		passed += max(nowStart-lastStart, nowWall.Sub(lastWall), 0)
		lastStart, lastWall = nowStart, nowWall
		return passed
	}
}
