// SPDX-License-Identifier: Apache-2.0

// Package fleet simulates many controllers that share the write quota of a subscription, in virtual time. Each has its
// own ratelimit.Budget and knows of the others only what Azure answers.
package fleet
