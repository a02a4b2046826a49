// SPDX-License-Identifier: Apache-2.0

// Package contest says who else writes what Weir writes, and how Weir gives way.
//
//	contest.go     what is contested of a Service, and since when
//	record.go      when a part that somebody else undoes is left as he wants it
//	inprogress.go  what somebody else is just writing
//	write.go       one write: the lock that other controllers take, and what somebody else wrote meanwhile
//
// The time is an argument wherever something is decided by it.
package contest
