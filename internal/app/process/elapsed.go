// SPDX-License-Identifier: Apache-2.0

package process

import (
	"sync"
	"time"
)

// elapsed returns a clock of the time that has passed, by whichever of two clocks counts
// more of it between two readings. Each can stand still while the machine does: the one
// that counts from its start where a hypervisor stops it, the wall clock until it is set.
// It never goes back, as the wall clock may; that it is set forward ends a lead in vain, at
// worst.
func elapsed(sinceStart func() time.Duration, wall func() time.Time) func() time.Duration {
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
