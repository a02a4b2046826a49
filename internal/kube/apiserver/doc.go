// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the way to the API server, whatever is asked there.
//
//	reach.go          connections that cannot be made, and what follows when they can again
//	watches.go        which watches are there, and which are broken
//	errors.go         which errors may pass by themselves
//	metricsaccess.go  who may read metrics, by the API server's word
package apiserver

// FieldOwner is Weir's name in managedFields, and as the source of events.
const FieldOwner = "weir"
