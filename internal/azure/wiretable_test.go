// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"time"

	"weir.dev/weir/internal/fault"
)

// column is the request of a pool update that a row's answer is given to. Whatever
// else the update asks is answered well.
type column string

const (
	toGet    column = "GET"
	toPut    column = "PUT"
	toPoll   column = "poll"        // of the operation
	toSelf   column = "poll itself" // of the pool, where Azure named no operation
	toResult column = "result"      // the GET that fetches what was written
)

var columns = []column{toGet, toPut, toPoll, toSelf, toResult}

// op is what the client makes the request for.
func (c column) op() string {
	switch c {
	case toGet:
		return opGet
	case toPut:
		return opPut
	case toResult:
		return opResult
	}
	return opPoll
}

// follows reports whether the column's request follows an accepted write.
func (c column) follows() bool { return c != toGet && c != toPut }

// fate is what becomes of a pool update whose request gets one answer.
type fate struct {
	requests int         // on the wire, in the column, in one attempt
	class    fault.Class // empty is success
	code     string      // empty is the row's
	once     bool        // the answer is given once; otherwise as often as is asked
	paced    bool        // the requests keep the pace that the answer asks for
}

var (
	notDriven = fate{}
	fine      = fate{requests: 1}
	refused1  = fate{requests: 1, class: fault.Terminal}
	gone      = fate{requests: 1, class: fault.Stale}
	laneOwns  = fate{requests: 1, class: fault.Retriable}
	// unknown is a write of which nothing tells whether it landed.
	unknown = fate{requests: 1, class: fault.Retriable, code: fault.CodeOutcomeUnknown}
	// sdkOwns is four requests, after which trying again at another layer is out.
	sdkOwns     = fate{requests: 4, class: fault.Terminal}
	unreachable = fate{requests: 4, class: fault.Terminal, code: fault.CodeUnreachable}
	// unfollowed is an accepted write whose polls have spent the SDK's retries.
	unfollowed = fate{requests: 4, class: fault.Retriable, code: fault.CodeOutcomeUnknown}
	waitedOut  = fate{requests: 2, once: true}
	unreadable = fate{requests: 1, class: fault.Terminal, code: fault.CodeUnclassified}
	// askedTwice is the SDK's answer to a challenge for another token.
	askedTwice   = fate{requests: 2, class: fault.Terminal}
	twiceUnknown = fate{requests: 2, class: fault.Retriable, code: fault.CodeOutcomeUnknown}
)

// wireRow is one answer of Azure, or of whatever stands between, and what it costs.
type wireRow struct {
	name   string
	answer reply
	code   string // of a fault that has no code of its own

	get, put, poll, self, result fate

	// after is the Retry-After that the answer names, until the same as a time; at
	// most one is set.
	after *time.Duration
	until time.Time
	// paced is how long the SDK waits between its tries; 0 is its own back-off.
	paced time.Duration
	// ends is true for an operation that ended badly: Azure has taken the write back.
	ends bool
	// unseen is true if the client finds nothing wrong with the answer: the lane does,
	// by comparing it with what it wrote.
	unseen bool
}

// refusedBy is a row that no layer asks again for.
func refusedBy(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: refused1, put: refused1}.unknownAfter()
}

// unknownAfter fills in that following an accepted write ends with one such answer.
func (r wireRow) unknownAfter() wireRow {
	r.poll, r.self, r.result = unknown, unknown, unknown
	return r
}

// ownedByLane is a row that the pool lane tries again, from a fresh read.
func ownedByLane(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: laneOwns, put: laneOwns}.unknownAfter()
}

// ownedBySDK is a row that the SDK tries again within the attempt.
func ownedBySDK(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: sdkOwns, put: sdkOwns, poll: unfollowed, self: unfollowed, result: unfollowed}
}

// throttled is a 429: the lane's, unless a write is under way, which is waited for.
func throttled(name string, r reply, code string) wireRow {
	return wireRow{name: name, answer: r, code: code, get: laneOwns, put: laneOwns, poll: waitedOut, self: waitedOut, result: waitedOut}
}

// in returns the row's fate in a column.
func (r wireRow) in(c column) fate {
	return map[column]fate{toGet: r.get, toPut: r.put, toPoll: r.poll, toSelf: r.self, toResult: r.result}[c]
}

// codeIn returns the code of the row's fault in a column.
func (r wireRow) codeIn(c column) string {
	switch f := r.in(c); {
	case f.class == "":
		return ""
	case f.code != "":
		return f.code
	}
	return r.code
}

// retryAt returns the time that the answer names, as understood at now; zero if none.
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

// end returns when an attempt that began at start ends, and what RetryAt its fault
// then has. Azure itself takes no time.
func (r wireRow) end(c column, start time.Time) (end, retryAt time.Time) {
	f, t := r.in(c), start
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

// sdkPause is how long the SDK waits between two tries.
func (r wireRow) sdkPause(now time.Time) time.Duration {
	switch {
	case r.paced > 0:
		return r.paced
	case r.until.After(now):
		return r.until.Sub(now)
	}
	return sdkBackOff
}

// pollPause is how long a throttled poll waits: never less than a second.
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
