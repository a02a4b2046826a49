// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// testing/synctest requires a *testing.T, which the shipped command does not have. A zero T works:
// synctest.Test creates its own T for the bubble and only uses the name and cleanup state of the
// parent. testing.MainStart would parse the process's arguments and print PASS. If a future Go
// needs more, all tests of this package fail.
var zeroT = new(testing.T)

// runTimeout limits a bubble in real time.
const runTimeout = 2 * time.Minute

// runInVirtualTime runs f in virtual time. It returns a panic, a deadlock or a timeout as text, or "". A
// runInVirtualTime that does not end is abandoned.
func runInVirtualTime(f func()) string {
	end := make(chan string, 1)
	go func() {
		trouble := ""
		defer func() {
			if lockedUp := recover(); lockedUp != nil && trouble == "" {
				trouble = fmt.Sprint(lockedUp)
			}
			end <- trouble
		}()
		synctest.Test(zeroT, func(*testing.T) {
			defer func() {
				if p := recover(); p != nil {
					trouble = fmt.Sprint("panic: ", p)
				}
			}()
			f()
		})
	}()
	late := time.NewTimer(runTimeout)
	defer late.Stop()
	select {
	case trouble := <-end:
		return trouble
	case <-late.C:
		return fmt.Sprintf("no end within %s of real time", runTimeout)
	}
}
