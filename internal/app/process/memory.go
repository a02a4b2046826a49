// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"runtime/debug"
)

// gcPercent is the GOGC value: by how many percent the heap may grow between collections. Most of the heap
// is cached cluster state; a value below Go's 100 saves memory for little CPU.
const gcPercent = 50

// SetGCPercent sets gcPercent, unless GOGC is set.
func SetGCPercent() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
}
