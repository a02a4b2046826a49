// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

var start = time.Now()

// sinceStart counts the time for which the machine was suspended, as Go's own clock on
// Linux does not.
func sinceStart() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(start) // a sandbox without that clock
	}
	return time.Duration(t.Nano())
}
