// SPDX-License-Identifier: Apache-2.0

// Package lag says how long changes of pools take to be in Azure, in virtual time: the lanes and
// the client that ship play a trace against the emulator, and beside them stand schedules that
// know the future, under the same budget of writes, and one that ticks.
//
//	trace.go        what happens: Traces
//	weir.go         Weir plays a trace
//	model.go        a schedule plays a trace, by the costs of a strategy
//	clairvoyant.go  the best that is found for who knows the future
//	exact.go        the best there is, of traces that are small
//	bound.go        what nobody goes below
//	measure.go      writes → lag, and what is missing and wrong for how long
//	page.go, plot.go  docs/reference/lag.md, and its plots
package lag
