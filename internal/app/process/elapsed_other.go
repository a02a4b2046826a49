// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "time"

var start = time.Now()

// sinceStart is Go's own clock. Whether it counts the time for which the machine was
// suspended depends on the system; where it does not, the wall clock does.
func sinceStart() time.Duration { return time.Since(start) }
