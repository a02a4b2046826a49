// SPDX-License-Identifier: Apache-2.0

// Package pace says how soon a pool that keeps changing may be written again. It is pure: time is an argument.
//
// Azure counts the writes of a subscription, for all who write there. Weir keeps a share of
// them, leaves the rest to others, and spends its own where it shortens waiting most: a pool
// that changes once in a while is written at once, and pools that change all the time divide
// what is left. Nobody waits for more than the interval because of it.
//
//	budget.go    Budget: what a subscription's writes have left, and what follows for a pool
//	quota.go     what Azure counts, and what is known of it (Window, bucket)
//	activity.go  how often pools change
//	shares.go    what may be written for the Services of each namespace
//	rejections.go  Rejections: how long an object and a namespace wait after a rejection
//	budgets.go   Budgets: those of all subscriptions, for all who write and ask
package pace
