// SPDX-License-Identifier: Apache-2.0

package leader

import "time"

// RecordObserved records the Lease as a process that does not lead has read it. A change is a renewal.
func (f *Fence) RecordObserved(lease string) {
	if f == nil {
		return
	}
	now := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if lease != f.observedLease {
		f.observedLease, f.observedAt = lease, now
	}
}

// SinceRenewed returns for how long this process has not seen a renewal of the Lease.
func (f *Fence) SinceRenewed() time.Duration {
	now := f.clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return now - f.observedAt
}
