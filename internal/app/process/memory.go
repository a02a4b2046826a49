// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"runtime/debug"
)

// heapGrowth is the GOGC value: by how many percent the heap may grow between collections. Most of the heap
// is cached cluster state; a value below Go's 100 saves memory for little CPU.
const heapGrowth = 50

// SaveMemory sets heapGrowth, unless GOGC is set.
func SaveMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(heapGrowth)
	}
}
