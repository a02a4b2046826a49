// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "time"

var start = time.Now()

// sinceStart uses Go's monotonic clock. Whether that includes suspended time depends on the OS; elapsed also
// reads the wall clock.
func sinceStart() time.Duration { return time.Since(start) }
