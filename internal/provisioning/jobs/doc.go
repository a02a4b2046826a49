// SPDX-License-Identifier: Apache-2.0

// Package jobs creates and reads the Jobs by which steps of Provisions run containers in targets.
package jobs
