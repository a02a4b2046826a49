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

// wait polls an accepted write at the pace of the responses and waits out a 429. Other errors end
// the wait, as does a Retry-After beyond the deadline of ctx, so that the caller can defer the pool
// and free its worker. early may be nil.
func wait(ctx context.Context, follow *call, poller *runtime.Poller[json.RawMessage], first *http.Response, early *looks) (none json.RawMessage, err error) {
	answer, start := first, time.Now()
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
			if follow.seen(poller.Done(), time.Now()); n == 1 && early != nil && look.Tells(poller.Done(), time.Since(start)) {
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

func (c *call) seen(over bool, now time.Time) {
	if over {
		c.over = now
		return
	}
	c.running = now
}

// lostPoll detects a failed poll that the SDK accepts: after a response with only a Location, the
// SDK treats 408, 500, 502, 503 and 504 as in progress. Polling on would be a second retry layer.
func lostPoll(done bool, resp *http.Response) bool {
	return !done && resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusTooManyRequests
}

func tooLate(ctx context.Context, answer *http.Response) bool {
	at, named := backoff.RetryAfter(answer.Header, time.Now())
	end, ends := ctx.Deadline()
	return named && ends && at.After(end)
}

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

// rested waits out a Retry-After that blocks polling. It returns false for other errors, or if ctx
// ends first.
func rested(ctx context.Context, err error) bool {
	rest, ok := errors.AsType[*resting](err)
	if end, ends := ctx.Deadline(); !ok || ends && rest.until.After(end) {
		return false
	}
	return sleep.For(ctx, time.Until(rest.until)) == nil
}

const longestPause = time.Minute

func pollAt(answer *http.Response, now time.Time) time.Time {
	delay := pollInterval
	if answer != nil {
		// Wait even for a Retry-After of 0: only ctx limits the loop.
		if at, ok := backoff.RetryAfter(answer.Header, now); ok {
			delay = max(at.Sub(now), time.Second)
		} else if answer.StatusCode == http.StatusTooManyRequests {
			delay = closedWithoutRetryAfter
		}
		if answer.StatusCode != http.StatusTooManyRequests {
			delay = min(delay, longestPause) // Retry-After of a poll is advice, and the worker is waiting
		}
	}
	return now.Add(delay)
}
