// SPDX-License-Identifier: Apache-2.0

//go:build race

package ensure_test

// raced: the race detector changes which of several calls side by side goes out first, so only
// the checks of each step count with it; the traces are compared without it.
const raced = true
