// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"

	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

// Operations of a Client. Polling an accepted write is never gated: its outcome must be known.
const (
	opGet    = "get"
	opList   = "list"
	opPut    = "put"
	opPatch  = "patch"
	opPost   = "post"
	opHealth = "health" // a POST that changes nothing, and counts as a write
	opDelete = "delete"
	opPoll   = "poll"
	opResult = "result"
)

// call describes one SDK call. It travels in the context for policies and spans.
type call struct {
	op string
	target
	// startedAs is the operation of the accepted write that a poll follows.
	startedAs string
	// isCreate is set for a write of a new resource; a 404 to it concerns another resource.
	isCreate bool
	token    atomic.Pointer[string]
	// isTruncated is set if the body of an error response was cut off; only its status is known.
	isTruncated atomic.Bool
	sent        atomic.Bool
	// mayBeApplied is set if a failed try may have reached the resource provider. The SDK retries it.
	mayBeApplied atomic.Bool
	// hasNewToken is set if Azure rejected the token of the last try, and another one was requested.
	hasNewToken atomic.Bool
	pages       pages
	// runningAt is when the operation was last in progress, the other one when it was finished.
	runningAt, finishedAt time.Time
}

func (c *call) isWrite() bool  { return verbs[c.op] != "" && c.op != opGet && c.op != opList }
func (c *call) isPoll() bool   { return c.op == opPoll || c.op == opResult }
func (c *call) newPoll() *call { return &call{op: opPoll, startedAs: c.op, target: c.target} }

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns nil for the SDK's own requests.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// retryOptions replaces the SDK's check of StatusCodes, to also retry lost reads. A write without a
// response may have succeeded; a retry would conflict with its own etag. A Retry-After beyond
// MaxRetryDelay is not retried; very large values overflow in the SDK, but not here.
func retryOptions(r Retry) policy.RetryOptions {
	longest := cmp.Or(r.Delay, sdkMaxDelay)
	statuses := retryrepectthrottled.GetRetriableStatusCode()
	return policy.RetryOptions{
		MaxRetries: r.MaxRetries,
		// Jitter is at most a fifth, so twice the cap always yields the cap. A negative RetryDelay
		// is the cap in azcore 1.24, despite its documentation.
		RetryDelay:    2 * r.Delay,
		MaxRetryDelay: r.Delay,
		StatusCodes:   statuses,
		ShouldRetry: func(resp *http.Response, err error) bool {
			if err != nil {
				return errors.As(err, new(*noResponseError))
			}
			if c := callOf(resp.Request.Context()); c != nil && c.hasNewToken.Load() {
				return true
			}
			now := time.Now()
			at, _ := ratelimit.RetryAfter(resp.Header, now)
			return slices.Contains(statuses, resp.StatusCode) && at.Sub(now) <= longest
		},
	}
}

const sdkMaxDelay = time.Minute

// noResponseError marks a read without a response.
type noResponseError struct{ err error }

func (e *noResponseError) Error() string { return e.err.Error() }
func (e *noResponseError) Unwrap() error { return e.err }

// observePolicy sees every request on the wire.
type observePolicy struct {
	onRequest func(requestlog.Call)
	writes    *ratelimit.Budgets
}

// Do implements policy.Policy.
func (o observePolicy) Do(req *policy.Request) (*http.Response, error) {
	c := callOf(req.Raw().Context())
	op := "token"
	if c != nil {
		op = c.op
		c.sent.Store(true)
		c.token.Store(new(strings.TrimPrefix(req.Raw().Header.Get("Authorization"), "Bearer ")))
	}
	start := time.Now()
	o.countWrite(req.Raw().Context(), c)
	resp, err := req.Next()
	o.recordRemaining(c, resp)
	o.recordThrottle(c, resp, time.Now())
	status := 0
	if resp != nil {
		status = resp.StatusCode
		// The SDK's ResponseError keeps the request and prints it; drop its secrets. The SDK needs
		// no request headers afterwards.
		resp.Request = redactRequest(req.Raw())
	}
	if o.onRequest != nil {
		o.onRequest(describeCall(req, resp, requestlog.Call{At: time.Now(), Took: time.Since(start), Op: op, Status: status}))
	}
	if c != nil && c.isWrite() && (resp == nil || slices.Contains(retryrepectthrottled.GetRetriableStatusCode(), status)) {
		c.mayBeApplied.Store(true)
	}
	if err != nil && status >= http.StatusBadRequest {
		// A truncated error response keeps status and headers. As a lost connection, a 429 would be
		// retried at once.
		resp.Body = http.NoBody
		if c != nil {
			c.isTruncated.Store(true)
		}
		return resp, nil
	}
	if err != nil && req.Raw().Method == http.MethodGet && !errors.As(err, new(*LimitError)) {
		err = &noResponseError{err: err}
	}
	return resp, err
}

func describeCall(req *policy.Request, resp *http.Response, record requestlog.Call) requestlog.Call {
	ctx := req.Raw().Context()
	if c := callOf(ctx); c != nil {
		record.Resource, record.Causes = c.armID(), requestlog.ContextCauses(ctx)
	}
	record.RequestID, record.CorrelationID = requestIDs(resp)
	return record
}

func requestIDs(resp *http.Response) (requestID, correlationID string) {
	if resp == nil {
		return "", ""
	}
	return headerID(resp, "x-ms-request-id"), headerID(resp, "x-ms-correlation-request-id")
}

// headerID returns "" for an unexpected format.
func headerID(resp *http.Response, header string) string {
	if id := resp.Header.Get(header); codeRule.MatchString(id) {
		return id
	}
	return ""
}

// endpointPolicy sends the token only to Azure Resource Manager, since responses name URLs for polling and
// for the next page.
type endpointPolicy struct{ endpoint Endpoint }

// Do implements policy.Policy.
func (p endpointPolicy) Do(req *policy.Request) (*http.Response, error) {
	if err := p.endpoint.CheckURL(req.Raw().URL); err != nil {
		return nil, &nonRetriableError{err}
	}
	if c := callOf(req.Raw().Context()); c != nil && c.op == opList {
		if err := c.pages.checkNext(req.Raw().URL); err != nil {
			return nil, err
		}
	}
	return req.Next()
}

// nonRetriableError must not be retried by the SDK.
type nonRetriableError struct{ error }

// Unwrap returns the wrapped error.
func (e *nonRetriableError) Unwrap() error { return e.error }

// NonRetriable stops the SDK's retries.
func (*nonRetriableError) NonRetriable() {}

func (c *call) redactToken(text string) string {
	if token := c.token.Load(); token != nil && *token != "" {
		return strings.ReplaceAll(text, *token, redactionMark)
	}
	return text
}
