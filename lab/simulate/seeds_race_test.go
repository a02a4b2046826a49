// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulate

// seeds are few under the race detector, which makes each of them much slower; the
// Makefile plays the others without it.
const seeds = 200
