// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// wholeFrom is how many pools have to be due for a write of the whole load balancer.
const wholeFrom = 3

// together returns the pools to attempt by one write of the load balancer, and for which
// changes that may be; none if they are too few, or if such writes are not to be made.
func (l *lane) together(now time.Time) ([]lb.PoolKey, wholewrite.Leaves) {
	if l.cfg.Whole == nil || l.wholeAfter.After(now) {
		return nil, wholewrite.Leaves{}
	}
	may := l.may(now)
	if may.None() {
		return nil, may
	}
	due := l.queue.together(now, l.cfg.Interval, may)
	if len(due) < wholeFrom {
		return nil, may
	}
	return due, may
}

// may asks for which changes pools may be written together.
func (l *lane) may(now time.Time) wholewrite.Leaves {
	addresses, states := l.verdicts.May(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
	return wholewrite.Leaves{Addresses: addresses, States: states}
}
