// SPDX-License-Identifier: Apache-2.0

package poolschedule

import "time"

// burst is how many passes a quiet pool has in hand; one more comes each interval.
const burst = 3

// passes is a pool's stock of passes. The zero value is a full stock.
type passes struct {
	Taken  int       // how many of the burst are spent
	refill time.Time // when the last one came back, or the first was taken
}

// at returns the stock at now: one pass comes back each interval.
func (p passes) at(now time.Time, interval time.Duration) passes {
	if p.Taken == 0 {
		return passes{}
	}
	back := min(int(now.Sub(p.refill)/interval), p.Taken)
	if back > 0 {
		p.Taken -= back
		p.refill = p.refill.Add(time.Duration(back) * interval)
	}
	return p
}

// take spends a pass at now. A change that goes along with an admin state waited for none, and
// leaves no debt: the next one waits for one pass.
func (p passes) take(now time.Time, interval time.Duration) passes {
	p = p.at(now, interval)
	if p.Taken == 0 {
		p.refill = now
	}
	p.Taken = min(p.Taken+1, burst)
	return p
}

// nextAt returns when a pass is there: the zero time if one is now.
func (p passes) nextAt(interval time.Duration) time.Time {
	if p.Taken < burst {
		return time.Time{}
	}
	return p.refill.Add(interval)
}
