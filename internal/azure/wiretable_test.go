// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"time"

	"weir.dev/weir/internal/armerror"
)

// requestKind is the request of a pool update that gets a row's response; all other requests succeed.
type requestKind string

const (
	toGet    requestKind = "GET"
	toPut    requestKind = "PUT"
	toPoll   requestKind = "poll"        // of the operation
	toSelf   requestKind = "poll itself" // of the pool, if Azure named no operation
	toResult requestKind = "result"      // the final GET
)

var requestKinds = []requestKind{toGet, toPut, toPoll, toSelf, toResult}

// op returns the client's operation of the request.
func (r requestKind) op() string {
	switch r {
	case toGet:
		return opGet
	case toPut:
		return opPut
	case toResult:
		return opResult
	}
	return opPoll
}

// follows reports whether the request follows an accepted write.
func (r requestKind) follows() bool { return r != toGet && r != toPut }

// expectedResult is the result of a pool update with one such response.
type expectedResult struct {
	requests int            // on the wire, in the column, in one attempt
	class    armerror.Class // empty for success
	code     string         // empty for the row's
	once     bool           // the response is given once, otherwise always
	paced    bool           // the requests respect Retry-After
}

var (
	notDriven = expectedResult{}
	fine      = expectedResult{requests: 1}
	refused1  = expectedResult{requests: 1, class: armerror.Terminal}
	gone      = expectedResult{requests: 1, class: armerror.Stale}
	laneOwns  = expectedResult{requests: 1, class: armerror.Retriable}
	// unknown is a write with an unknown outcome.
	unknown = expectedResult{requests: 1, class: armerror.Retriable, code: armerror.CodeOutcomeUnknown}
	// sdkOwns is four requests without a retry at another layer.
	sdkOwns     = expectedResult{requests: 4, class: armerror.Terminal}
	unreachable = expectedResult{requests: 4, class: armerror.Terminal, code: armerror.CodeUnreachable}
	// unfollowed is an accepted write after the SDK's retries of a poll.
	unfollowed = expectedResult{requests: 4, class: armerror.Retriable, code: armerror.CodeOutcomeUnknown}
	waitedOut  = expectedResult{requests: 2, once: true}
	unreadable = expectedResult{requests: 1, class: armerror.Terminal, code: armerror.CodeUnclassified}
	// askedTwice is the SDK's reaction to an authentication challenge.
	askedTwice   = expectedResult{requests: 2, class: armerror.Terminal}
	twiceUnknown = expectedResult{requests: 2, class: armerror.Retriable, code: armerror.CodeOutcomeUnknown}
)

// wireRow is one response, of Azure or a proxy, and its cost.
type wireRow struct {
	name   string
	answer reply
	code   string // of a fault without a code

	get, put, poll, self, result expectedResult

	// after is the Retry-After in seconds, until as a date; at most one is set.
	after *time.Duration
	until time.Time
	// paced is the delay between the SDK's tries; 0 for its default backoff.
	paced time.Duration
	// ends is set for a failed operation: Azure has rolled back the write.
	ends bool
	// unseen is set if only the worker detects the failure, by comparing the result.
	unseen bool
}

// rejectedRow is a row that no layer retries.
func rejectedRow(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: refused1, put: refused1}.unknownAfter()
}

// unknownAfter sets the fate of polls and final GET to an unknown outcome.
func (r wireRow) unknownAfter() wireRow {
	r.poll, r.self, r.result = unknown, unknown, unknown
	return r
}

// workerRow is a row that the worker retries after a new read.
func workerRow(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: laneOwns, put: laneOwns}.unknownAfter()
}

// sdkRow is a row that the SDK retries within the attempt.
func sdkRow(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: sdkOwns, put: sdkOwns, poll: unfollowed, self: unfollowed, result: unfollowed}
}

// throttledRow is a 429: retried by the worker, or waited out during an accepted write.
func throttledRow(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: laneOwns, put: laneOwns, poll: waitedOut, self: waitedOut, result: waitedOut}
}

// resultIn returns the row's fate in a column.
func (r wireRow) resultIn(c requestKind) expectedResult {
	return map[requestKind]expectedResult{toGet: r.get, toPut: r.put, toPoll: r.poll, toSelf: r.self, toResult: r.result}[c]
}

// resultCode returns the code of the row's fault in a column.
func (r wireRow) resultCode(c requestKind) string {
	switch f := r.resultIn(c); {
	case f.class == "":
		return ""
	case f.code != "":
		return f.code
	}
	return r.code
}

// retryAt returns the response's Retry-After as a time, or zero.
func (r wireRow) retryAt(now time.Time) time.Time {
	switch {
	case r.after != nil:
		return now.Add(*r.after)
	case r.until.IsZero():
		return time.Time{}
	case r.until.Before(now):
		return now
	}
	return r.until
}

// end returns the end of an attempt and the RetryAt of its fault. Azure responds instantly.
func (r wireRow) end(c requestKind, start time.Time) (end, retryAt time.Time) {
	f, t := r.resultIn(c), start
	if c.follows() {
		t = t.Add(pollInterval)
	}
	switch {
	case f.requests == 4:
		for range 3 {
			t = t.Add(r.sdkPause(t))
		}
	case f.once, f.paced:
		for range f.requests - 1 {
			t = t.Add(r.pollPause(t))
		}
	}
	if f.class == "" || r.answer.status == 0 || r.ends {
		return t, time.Time{}
	}
	return t, r.retryAt(t)
}

// sdkPause returns the delay between two tries of the SDK.
func (r wireRow) sdkPause(now time.Time) time.Duration {
	switch {
	case r.paced > 0:
		return r.paced
	case r.until.After(now):
		return r.until.Sub(now)
	}
	return sdkBackOff
}

// pollPause returns the delay of a throttled poll, at least one second.
func (r wireRow) pollPause(now time.Time) time.Duration {
	if at := r.retryAt(now); !at.IsZero() {
		return max(at.Sub(now), time.Second)
	}
	return closedWithoutRetryAfter
}

const (
	deadline   = 10 * time.Minute // of an attempt
	sdkBackOff = time.Minute      // in these tests
)
