// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulate

// seeds are those of TestSeeds.
const seeds = 2000
