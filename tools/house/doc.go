// SPDX-License-Identifier: Apache-2.0

// Command house measures the code: package sizes, file cycles, and the call path from an event to its effect.
//
//	go run ./tools/house                          this tree, as text
//	go run ./tools/house -C ../older -o json      another tree, as JSON
//	go run ./tools/house -v                       list the functions of each walk
//	go run ./tools/house -walk 'name=pkg.Entry>pkg.(*Type).End'
//
// The files:
//
//	doc.go      definitions
//	main.go     flags
//	load.go     loads a tree: go list, go/parser, go/types
//	size.go     lines, files and imports of packages, methods and fields of types
//	cycle.go    dependency cycles between the files of a package
//	graph.go    reference graph of functions
//	walk.go     paths from an entry to an end
//	default.go  the default walks
//	print.go    text and JSON
//
// Shipped packages are those of this module that cmd/weir links; tests do not count. Lines include
// comments and blank lines. Imports are packages of this module. Promoted methods do not count, and an embedded struct counts as one field.
// A file depends on another file of its package if it uses a package-level identifier, method or field
// declared there.
//
// A walk is a list of segments, each "entry>end", with "|" between alternative entries or ends. Segments
// are measured separately and merged, because no call crosses a work queue or channel. A segment contains
// each function that an entry reaches and that reaches an end, so helpers that return without reaching an
// end do not count. A function reaches what it mentions, whether called or passed as a value:
//
//   - a function literal belongs to the enclosing function;
//   - an interface method leads to every implementation in the shipped packages, unless the
//     interface belongs to the standard library;
//   - a field, package variable or parameter of function type leads to every value assigned or
//     passed to it, and a function literal assigned this way is a function of its own;
//   - a loop (-loop) is entered only by a segment that starts there.
//
// In the output, "stays" counts the functions on a walk, "returns" their return statements, and
// "shortest" the functions on the shortest path, including entry and end. "read" counts the functions
// plus everything they mention, which is the code to read in order to follow the walk.
package main
