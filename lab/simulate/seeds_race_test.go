// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulate

// defaultSeeds is small because of the race detector's overhead; the Makefile runs the others without it.
const defaultSeeds = 80
