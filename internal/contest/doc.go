// SPDX-License-Identifier: Apache-2.0

// Package contest says who else writes what Weir writes, and how Weir gives way.
//
//	contest.go     what is contested of a Service, and since when
//	record.go      when a part that somebody else undoes is left as he wants it
//	write.go       one write: the lock that other controllers take, what somebody else wrote meanwhile, and is just writing
//
// The time is an argument wherever something is decided by it.
package contest
