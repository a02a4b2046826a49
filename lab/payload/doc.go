// SPDX-License-Identifier: Apache-2.0

// Package payload has no program: its tests measure what a large payload costs over a link that is slow and
// breaks, fetched as docs/guide/provisioning.md says and otherwise, and run the script of that page.
package payload
