// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulate

const defaultSeeds = 400
