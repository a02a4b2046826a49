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

	"weir.dev/weir/internal/ratelimit"
)

// waitForWrite polls an accepted write at the pace of the responses and waits out a 429. Other errors end
// the wait, as does a Retry-After beyond the deadline of ctx, so that the caller can defer the pool
// and free its worker. early may be nil.
func waitForWrite(ctx context.Context, poll *call, poller *runtime.Poller[json.RawMessage], first *http.Response, early *earlyReader) (none json.RawMessage, err error) {
	response, start := first, time.Now()
	for n := 1; !poller.Done(); n++ {
		next := nextPollTime(response, time.Now())
		if n == 1 {
			if result, over := early.readUntil(ctx, poll, next); over {
				return result, nil
			}
		}
		if err := ratelimit.Sleep(ctx, time.Until(next)); err != nil {
			return none, err
		}
		resp, err := poller.Poll(ctx)                //nolint:bodyclose // the poller has read the body to its end
		switch throttled := throttleResponse(err); { //nolint:bodyclose // as above
		case err == nil && isPollFailed(poller.Done(), resp):
			return none, runtime.NewResponseError(resp)
		case err == nil:
			response = resp
			if poll.recordPoll(poller.Done(), time.Now()); n == 1 && early != nil && isReadConclusive(poller.Done(), time.Since(start)) {
				early.onFirstPoll(poller.Done())
			}
		case throttled != nil && !exceedsDeadline(ctx, throttled):
			response = throttled
		case !waitRetryAfter(ctx, err):
			return none, err
		}
	}
	poll.op = opResult
	for {
		result, err := poller.Result(ctx)
		if waitRetryAfter(ctx, err) {
			continue
		}
		throttled := throttleResponse(err) //nolint:bodyclose // as above
		if throttled == nil || exceedsDeadline(ctx, throttled) {
			return result, err
		}
		if err := ratelimit.Sleep(ctx, time.Until(nextPollTime(throttled, time.Now()))); err != nil {
			return none, err
		}
	}
}

func (c *call) recordPoll(over bool, now time.Time) {
	if over {
		c.finishedAt = now
		return
	}
	c.runningAt = now
}

// isPollFailed detects a failed poll that the SDK accepts: after a response with only a Location, the
// SDK treats 408, 500, 502, 503 and 504 as in progress. Polling on would be a second retry layer.
func isPollFailed(done bool, resp *http.Response) bool {
	return !done && resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusTooManyRequests
}

func exceedsDeadline(ctx context.Context, resp *http.Response) bool {
	at, named := ratelimit.RetryAfter(resp.Header, time.Now())
	end, ends := ctx.Deadline()
	return named && ends && at.After(end)
}

func throttleResponse(err error) *http.Response {
	resp, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || resp.StatusCode != http.StatusTooManyRequests {
		return nil
	}
	if resp.RawResponse == nil {
		return &http.Response{}
	}
	return resp.RawResponse
}

// waitRetryAfter waits out a Retry-After that blocks polling. It returns false for other errors, or if ctx
// ends first.
func waitRetryAfter(ctx context.Context, err error) bool {
	rest, ok := errors.AsType[*retryAfterError](err)
	if end, ends := ctx.Deadline(); !ok || ends && rest.until.After(end) {
		return false
	}
	return ratelimit.Sleep(ctx, time.Until(rest.until)) == nil
}

const maxPollInterval = time.Minute

func nextPollTime(resp *http.Response, now time.Time) time.Time {
	delay := pollInterval
	if resp != nil {
		// Wait even for a Retry-After of 0: only ctx limits the loop.
		if at, ok := ratelimit.RetryAfter(resp.Header, now); ok {
			delay = max(at.Sub(now), time.Second)
		} else if resp.StatusCode == http.StatusTooManyRequests {
			delay = closedWithoutRetryAfter
		}
		if resp.StatusCode != http.StatusTooManyRequests {
			delay = min(delay, maxPollInterval) // Retry-After of a poll is advice, and the worker is waiting
		}
	}
	return now.Add(delay)
}
