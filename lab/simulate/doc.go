// SPDX-License-Identifier: Apache-2.0

// Package simulate searches for failures that the scenarios do not cover. It runs random schedules
// on a scenario.Stage in virtual time and evaluates every check after every step. Failing schedules
// are reduced.
//
// The same seed gives the same schedule, and the same schedule the same trace.
package simulate
