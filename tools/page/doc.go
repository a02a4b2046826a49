// SPDX-License-Identifier: Apache-2.0

// Package page tests weir page in a real Chromium: the program as it ships, before an API server that
// answers with what was written down in testdata. It is a module of its own, so that what ships has
// nothing of it.
package page
