// SPDX-License-Identifier: Apache-2.0

// Package payload contains only tests: they measure the cost of a large payload over a slow and
// unreliable link, fetched as docs/guide/provisioning.md recommends and otherwise, and run that
// page's script.
package payload
