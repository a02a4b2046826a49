// SPDX-License-Identifier: Apache-2.0

//go:build !race

package ensure_test

const raced = false
