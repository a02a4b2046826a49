// SPDX-License-Identifier: Apache-2.0

// Package page tests weir page in a real Chromium: the shipped program against an API server that
// replays testdata. It is a separate module, so that Weir does not depend on chromedp.
package page
