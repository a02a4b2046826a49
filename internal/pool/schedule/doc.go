// SPDX-License-Identifier: Apache-2.0

// Package schedule decides when and in which order backend pools are attempted, and what
// happens to their operations afterwards. It is pure: time is an argument.
//
// Operation is the work for a pool, History what is known of it, and Group its operations as
// scheduled.
package schedule
