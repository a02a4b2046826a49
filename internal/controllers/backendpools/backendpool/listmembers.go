// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"time"

	"weir.dev/weir/api/v1alpha1"
)

// ListMembers calls add for each recorded member of a BackendPool, with the time since which it is Down; zero if Azure
// has not shown it Down. It returns false if the record is not loaded yet.
func (c *Controller) ListMembers(p *v1alpha1.BackendPool, add func(ip netip.Addr, down time.Time)) bool {
	e := c.statuses.GetEntry(RefOf(p))
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	record := RecordOf(&e.status)
	for _, ip := range record.Written {
		var down time.Time
		if _, shown := e.observedDown[ip]; shown {
			down = record.Down[ip].Since
		}
		add(ip, down)
	}
	return true
}
