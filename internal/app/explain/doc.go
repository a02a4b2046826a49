// SPDX-License-Identifier: Apache-2.0

// Package explain is weir explain: the whole way of a Service, a BackendPool or a node, with what is
// missing on it, what happened, and what comes next.
//
//	read.go     what the API server knows, with the rights of whoever asks
//	members.go  which nodes a pool is to have, and which it has
//	text.go     how people see it
package explain
