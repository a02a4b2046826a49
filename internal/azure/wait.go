// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/look"
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/sleep"
)

// wait follows an accepted write until Azure is done with it, as slowly as the
// answers ask for. A 429 to a poll, or to the GET that fetches the result, is
// waited out: the write is under way whatever the polls meet. Any other failure
// ends the wait, and so does a 429 that names a time which the context will not see:
// its caller can park the pool until then, and leave the lane to others. early looks before the first
// poll; nil does not.
func wait(ctx context.Context, follow *call, poller *runtime.Poller[json.RawMessage], first *http.Response, early *looks) (none json.RawMessage, err error) {
	answer, begun := first, time.Now()
	for n := 1; !poller.Done(); n++ {
		next := pollAt(answer, time.Now())
		if n == 1 {
			if result, over := early.before(ctx, follow, next); over {
				return result, nil
			}
		}
		if err := sleep.For(ctx, time.Until(next)); err != nil {
			return none, err
		}
		resp, err := poller.Poll(ctx)           //nolint:bodyclose // the poller has read the body to its end
		switch throttled := throttledBy(err); { //nolint:bodyclose // as above
		case err == nil && lostPoll(poller.Done(), resp):
			return none, runtime.NewResponseError(resp)
		case err == nil:
			answer = resp
			if follow.seen(poller.Done(), time.Now()); n == 1 && early != nil && look.Tells(poller.Done(), time.Since(begun)) {
				early.polled(poller.Done())
			}
		case throttled != nil && !tooLate(ctx, throttled):
			answer = throttled
		case !rested(ctx, err):
			return none, err
		}
	}
	follow.op = opResult
	for {
		result, err := poller.Result(ctx)
		if rested(ctx, err) {
			continue
		}
		throttled := throttledBy(err) //nolint:bodyclose // as above
		if throttled == nil || tooLate(ctx, throttled) {
			return result, err
		}
		if err := sleep.For(ctx, time.Until(pollAt(throttled, time.Now()))); err != nil {
			return none, err
		}
	}
}

// seen keeps when an operation was under way, and when it was over.
func (c *call) seen(over bool, now time.Time) {
	if over {
		c.over = now
		return
	}
	c.running = now
}

// lostPoll reports whether a poll that the SDK calls good has failed. Where an answer
// named a Location alone, the SDK takes a 408, 500, 502, 503 or 504 for "not yet":
// it has spent its retries on it by then, and polling on would be a second layer's.
func lostPoll(done bool, resp *http.Response) bool {
	return !done && resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusTooManyRequests
}

// tooLate reports whether an answer names a time after the context's deadline.
func tooLate(ctx context.Context, answer *http.Response) bool {
	at, named := backoff.RetryAfter(answer.Header, time.Now())
	end, ends := ctx.Deadline()
	return named && ends && at.After(end)
}

// throttledBy returns the answer behind an error that is a 429; nil for any other.
func throttledBy(err error) *http.Response {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.StatusCode != http.StatusTooManyRequests {
		return nil
	}
	if answer.RawResponse == nil {
		return &http.Response{}
	}
	return answer.RawResponse
}

// rested waits until a resource wants calls again that an accepted write has to be followed
// on: somebody else may have been asked to leave it alone. It reports false for any other
// error, and where the context ends before.
func rested(ctx context.Context, err error) bool {
	rest, ok := errors.AsType[*resting](err)
	if end, ends := ctx.Deadline(); !ok || ends && rest.until.After(end) {
		return false
	}
	return sleep.For(ctx, time.Until(rest.until)) == nil
}

// longestPause is how long a poll waits at most for an operation that is under way.
const longestPause = time.Minute

// pollAt is when an answer wants the next poll; without a word of it, after pollInterval.
func pollAt(answer *http.Response, now time.Time) time.Time {
	delay := pollInterval
	if answer != nil {
		// A server that asks for no delay at all still gets a pause: the loop has
		// no other bound than the caller's context.
		if at, ok := backoff.RetryAfter(answer.Header, now); ok {
			delay = max(at.Sub(now), time.Second)
		} else if answer.StatusCode == http.StatusTooManyRequests {
			delay = closedWithoutRetryAfter
		}
		if answer.StatusCode != http.StatusTooManyRequests {
			delay = min(delay, longestPause) // an operation's pace is advice, and the lane waits
		}
	}
	return now.Add(delay)
}
