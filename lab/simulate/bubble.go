// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Virtual time is testing/synctest, and that wants a *testing.T, also in the command
// that ships. A zero one will do: synctest.Test makes a T of its own below it, for
// its bubble, and asks the upper one only for its name and whether it is being cleaned
// up. Running a whole test (testing.MainStart) would give a T too, and would parse the
// process's arguments and print PASS. Should a future Go want more of a T, every test
// of this package fails at once.
var noTest = new(testing.T)

// stuck is the longest that a bubble may take in real time.
const stuck = 2 * time.Minute

// bubble runs f in virtual time. It returns what f panicked with, how the bubble
// locked up, or that it does not come to an end; empty if all went well. A bubble that
// does not end is left behind.
func bubble(f func()) string {
	end := make(chan string, 1)
	go func() {
		trouble := ""
		defer func() {
			if lockedUp := recover(); lockedUp != nil && trouble == "" {
				trouble = fmt.Sprint(lockedUp)
			}
			end <- trouble
		}()
		synctest.Test(noTest, func(*testing.T) {
			defer func() {
				if p := recover(); p != nil {
					trouble = fmt.Sprint("panic: ", p)
				}
			}()
			f()
		})
	}()
	late := time.NewTimer(stuck)
	defer late.Stop()
	select {
	case trouble := <-end:
		return trouble
	case <-late.C:
		return fmt.Sprintf("no end within %s of real time", stuck)
	}
}
