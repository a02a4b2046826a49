// SPDX-License-Identifier: Apache-2.0

package nicupdate

import "time"

// yields exceeds the retry interval of a pool.
const yields = 45 * time.Second

const whyYield = "a load balancer is written first: machines that join and leave have overtaken its write twice"

// Yield pauses machine writes for a load balancer write that failed its etag check twice: machines
// joining and leaving change that etag. Running attempts finish. If none is running, another writer
// caused the conflict, and nothing is paused.
func (u *Updater) Yield() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until := time.Now().Add(yields); u.running > 0 && until.After(u.heldUntil) {
		u.heldUntil, u.heldWhy = until, whyYield
	}
}
