// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"runtime/debug"
)

// heapGrowth is by how many percent of what is in use the heap may grow until memory is collected; Go's
// own is 100. What is in use grows with the cluster, and most of it is the cluster: so it decides
// what a large one costs. It is collected more often for it, which is a small part of what a
// controller computes, and none while nothing happens.
const heapGrowth = 50

// SaveMemory sets heapGrowth, unless the environment has GOGC.
func SaveMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(heapGrowth)
	}
}
