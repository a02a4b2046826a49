// SPDX-License-Identifier: Apache-2.0

// Package lead says whether this process may still write as the leader of its replicas.
//
// A process does not notice that it was stopped for a while, be it by SIGSTOP, by
// maintenance of its machine or by a starved CPU. When it goes on, another may lead, and
// it works on what it read before. So each write asks the Fence right before it leaves,
// and the Fence answers by the time that has passed since a renewal of the leader's lease
// was asked for that succeeded, whoever slept meanwhile.
//
//	term.go   what one epoch of the lead allows, as a pure function of readings of a clock
//	fence.go  Fence: the term of this process, shared by all who write
//	body.go   Body: what a request carries, which asks once more while it leaves
package lead
