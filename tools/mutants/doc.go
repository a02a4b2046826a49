// SPDX-License-Identifier: Apache-2.0

// Command mutants runs mutation tests: it changes one place in the code at a time (go test -overlay; no
// file of the tree changes) and reports whether a test or the simulator detects it.
//
//	go run ./tools/mutants                                  60 mutants per package, drawn with seed 1
//	go run ./tools/mutants -sample 0 ./internal/pool/membership  all mutants of one package
//	go run ./tools/mutants -list ./internal/pool/updater      list the possible mutants
//	go run ./tools/mutants -write                           also update docs/reference/simulator.md
//
// The files:
//
//	main.go       flags and the run
//	operators.go  finds the mutants of a file
//	check.go      drops mutants that do not compile
//	weave.go      compiles all mutants into one build, selected by number
//	judge.go      runs the package's tests, fast ones first, then simulator seeds
//	state.go      results of earlier runs, to resume an interrupted one
//	report.go     score, survivors and the documentation page
//	play.go       runs simulator seeds in a separate process
//
// A mutant is killed if a test of its package fails (go test -short), or else if a simulator check
// fails in one of the seeds, provided that the simulator links the package. One that takes three times
// as long as the unchanged code is killed too, but counted separately, because a loaded machine has the
// same effect. Mutants that do not compile are not drawn.
package main
