// SPDX-License-Identifier: Apache-2.0

// Command house measures the house: how much there is, how it hangs together, and how far it
// is from an event to what becomes of it.
//
//	go run ./tools/house                          this tree, as text
//	go run ./tools/house -C ../older -o json      another tree, for a program
//	go run ./tools/house -v                       with the functions of each walk
//	go run ./tools/house -walk 'taint=kube.(*Cluster).nodeDiffers>poolupdate.(*queue).add'
//
// The files:
//
//	doc.go      what counts
//	main.go     flags
//	load.go     reads a tree: go list, go/parser, go/types
//	size.go     lines and files of packages, methods and fields of types
//	cycle.go    files of a package that refer to each other in a circle
//	graph.go    who mentions whom
//	walk.go     from an entry to an end
//	default.go  the three walks of this house
//	print.go    text and JSON
//
// What counts as shipped is what cmd/weir is built from, inside of this module; tests are
// apart. A line is a line of a file, comments and blank ones included. A type's methods are
// those declared on it or its pointer, promoted ones not; its fields are those of its struct,
// an embedded one being one. A file refers to another of its package if it uses what is
// declared there at package level, a method or a field. The largest set of files of which each
// reaches each other is the package's cycle.
//
// A walk goes from entries to ends. Its legs, one "entry>end" each, with "|" between several
// entries and between several ends, are measured apart and united: between two legs lies a work queue
// or a channel, which no call crosses. On the way is each function that an entry reaches and
// that reaches an end. What is called there and comes back without having reached an end (a
// decision, a conversion, a line of a log) is not on the way. A function reaches those that it
// mentions, whether it calls them or hands them on:
//
//   - a function literal is part of the function that holds it;
//   - a method of an interface leads to that method of each type of the shipped packages that
//     implements it, unless the interface is the standard library's;
//   - a field or a package's variable of function type leads to what is assigned to it
//     anywhere, a parameter to what is handed to it, and a function literal that is assigned
//     is a function of its own;
//   - a loop (-loop) is entered where a leg begins with it, and nowhere else.
//
// The stays of a walk are the functions on the way; files and packages are where they are
// declared, returns the return statements in them. "shortest" is how many functions lie on the
// shortest way, entry and end included; the rest are branches. "read" counts the stays and all
// that they mention themselves: who wants to follow the walk looks at these.
package main
