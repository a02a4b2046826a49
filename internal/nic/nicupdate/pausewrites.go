// SPDX-License-Identifier: Apache-2.0

package nicupdate

import "time"

// pauseDuration exceeds the retry interval of a pool.
const pauseDuration = 45 * time.Second

const pauseReason = "a load balancer is written first: machines that join and leave have overtaken its write twice"

// PauseWrites pauses machine writes for a load balancer write that failed its etag check twice: machines
// joining and leaving change that etag. Running attempts finish. If none is running, another writer
// caused the conflict, and nothing is paused.
func (u *Updater) PauseWrites() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until := time.Now().Add(pauseDuration); u.runningCount > 0 && until.After(u.blockedUntil) {
		u.blockedUntil, u.blockedReason = until, pauseReason
	}
}
