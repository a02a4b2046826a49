// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestTheHeapGrowsByHalf(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "80")
	if SetGCPercent(); debug.SetGCPercent(100) != 100 {
		t.Error("GOGC does not count")
	}
	if err := os.Unsetenv("GOGC"); err != nil { // Setenv restores it
		t.Fatal(err)
	}
	if SetGCPercent(); debug.SetGCPercent(100) != gcPercent {
		t.Error("it does not")
	}
}
