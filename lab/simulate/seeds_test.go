// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulate

// seeds is the number of seeds in TestSeeds.
const seeds = 2000
