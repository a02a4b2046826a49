// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// zeroT is for testing/synctest, which requires a *testing.T that the shipped command does not
// have. Only its name and cleanup state are used. If a future Go needs more, all tests of this
// package fail.
var zeroT = new(testing.T)

// runTimeout is in real time.
const runTimeout = 2 * time.Minute

// runInVirtualTime returns a panic, a deadlock or a timeout as text. A bubble that does not end is abandoned.
func runInVirtualTime(f func()) string {
	end := make(chan string, 1)
	go func() {
		failure := ""
		defer func() {
			if lockedUp := recover(); lockedUp != nil && failure == "" {
				failure = fmt.Sprint(lockedUp)
			}
			end <- failure
		}()
		synctest.Test(zeroT, func(*testing.T) {
			defer func() {
				if p := recover(); p != nil {
					failure = fmt.Sprint("panic: ", p)
				}
			}()
			f()
		})
	}()
	late := time.NewTimer(runTimeout)
	defer late.Stop()
	select {
	case failure := <-end:
		return failure
	case <-late.C:
		return fmt.Sprintf("no end within %s of real time", runTimeout)
	}
}
