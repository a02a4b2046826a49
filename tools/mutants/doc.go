// SPDX-License-Identifier: Apache-2.0

// Command mutants asks how good the tests and the simulator are: it changes the code in one
// place after the other (go test -overlay; no file of the tree changes), and looks who sees it.
//
//	go run ./tools/mutants                                  60 changes of each package, drawn with seed 1
//	go run ./tools/mutants -sample 0 ./internal/membership  all of one package
//	go run ./tools/mutants -list ./internal/poolupdate      what could be changed
//	go run ./tools/mutants -write                           and the block of docs/reference/simulator.md
//
// The files:
//
//	main.go       flags, and the order of things
//	operators.go  a file → the changes that can be made in it
//	check.go      which of them compile
//	weave.go      all of them in one build, each under its number
//	judge.go      runs the package's tests, the quick ones first, then seeds of the simulator
//	state.go      what earlier runs found, so that one that was interrupted goes on
//	report.go     score, survivors, and the page
//	play.go       the seeds, in a process of their own that holds the changes
//
// A change is killed if a test of its own package fails (go test -short), or else a check of the
// simulator in one of the seeds, if that is built from the package. One for which either takes three
// times as long as without a change is killed, too, and counted apart: a loaded machine may do that.
// One that does not compile is not drawn.
package main
