// SPDX-License-Identifier: Apache-2.0

package nicupdate

import "time"

// yields is how long no machine is attempted after a write of a load balancer has lost twice. It is longer
// than the interval after which a pool is tried again.
const yields = 45 * time.Second

const whyYield = "a load balancer is written first: machines that join and leave have overtaken its write twice"

// Yield has a load balancer be written that lost twice by its etag: machines that join and leave its pools
// change that, and many of them would overtake each try. Those under way end, and the next wait for a moment.
// Nothing waits where no machine is under way: then it was somebody else who wrote, and who does so all the
// time has machines wait no longer than theirs take.
func (u *Updater) Yield() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until := time.Now().Add(yields); u.running > 0 && until.After(u.heldUntil) {
		u.heldUntil, u.heldWhy = until, whyYield
	}
}
