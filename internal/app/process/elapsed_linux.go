// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

var start = time.Now()

// sinceStart includes suspended time, unlike Go's monotonic clock on Linux.
func sinceStart() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(start) // a sandbox without that clock
	}
	return time.Duration(t.Nano())
}
