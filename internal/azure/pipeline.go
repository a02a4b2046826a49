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

	"weir.dev/weir/internal/azure/cloud"
	"weir.dev/weir/internal/azure/redact"
	"weir.dev/weir/internal/azure/weight"
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/pace"
)

// The requests that a Client makes. Following an accepted write is not gated: the
// write is under way, and its end must be known.
const (
	opGet    = "get"
	opList   = "list"
	opPut    = "put"
	opPatch  = "patch"
	opPost   = "post"
	opDelete = "delete"
	opPoll   = "poll"
	opResult = "result"
)

// call travels in the context of one SDK call, so that policies and spans know
// what the request is for.
type call struct {
	op string
	target
	// began is what an accepted write began as, in a call that follows it.
	began string
	// creates is true for a write of what does not exist yet: a 404 to it is about
	// something else.
	creates bool
	// token authorized the last request.
	token atomic.Pointer[string]
	// torn is set once the body of a refusal broke off: its status is all that is known.
	torn atomic.Bool
	// sent is set once a request of the call was handed to the transport.
	sent atomic.Bool
	// passedOn is set once a request was answered, or not, in a way that leaves open
	// whether it was passed on: the SDK sends a write again after that.
	passedOn atomic.Bool
	// pages is how far a list is; its pages are asked for one after the other.
	pages pages
	// running is when what is followed was last seen under way, over when it was over.
	running, over time.Time
}

func (c *call) write() bool      { return verbs[c.op] != "" && c.op != opGet && c.op != opList }
func (c *call) followsUp() bool  { return c.op == opPoll || c.op == opResult }
func (c *call) following() *call { return &call{op: opPoll, began: c.op, target: c.target} }

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a request; nil for a request of the SDK's own.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// retryOptions decides what the SDK retries by itself. A ShouldRetry replaces the
// SDK's comparison with StatusCodes, so it makes both decisions: the five
// statuses, and a lost connection on a read. A write whose answer was lost may
// have landed; sending it again would meet its own etag.
//
// The SDK does not retry if Retry-After exceeds its longest delay, so a 503 that
// asks for two minutes surfaces after one request. One that asks for centuries overflows
// in the SDK, and does not here.
func retryOptions(r Retry) policy.RetryOptions {
	longest := cmp.Or(r.Pause, sdkLongestDelay)
	statuses := retryrepectthrottled.GetRetriableStatusCode()
	return policy.RetryOptions{
		MaxRetries: r.MaxRetries,
		// Jitter takes a fifth at most, so twice the cap is always the cap. (A
		// negative RetryDelay, said to be no delay, is the cap in azcore 1.24.)
		RetryDelay:    2 * r.Pause,
		MaxRetryDelay: r.Pause,
		StatusCodes:   statuses,
		ShouldRetry: func(resp *http.Response, err error) bool {
			if err != nil {
				return errors.As(err, new(*lostRead))
			}
			now := time.Now()
			at, _ := backoff.RetryAfter(resp.Header, now)
			return slices.Contains(statuses, resp.StatusCode) && at.Sub(now) <= longest
		},
	}
}

// sdkLongestDelay is the SDK's own, where Retry does not override it.
const sdkLongestDelay = time.Minute

// lostRead marks a read that no server answered.
type lostRead struct{ err error }

func (e *lostRead) Error() string { return e.err.Error() }
func (e *lostRead) Unwrap() error { return e.err }

// wire sits next to the transport, behind retries and authorization: it sees each
// request that leaves.
type wire struct {
	observe func(calls.Call)
	// writes counts writes; nil counts none.
	writes *pace.Budgets
}

// Do implements policy.Policy.
func (w wire) Do(req *policy.Request) (*http.Response, error) {
	c := callOf(req.Raw().Context())
	op := "token"
	if c != nil {
		op = c.op
		c.sent.Store(true)
		c.token.Store(new(strings.TrimPrefix(req.Raw().Header.Get("Authorization"), "Bearer ")))
	}
	start := time.Now()
	w.counts(req.Raw().Context(), c)
	resp, err := req.Next()
	w.learns(c, resp)
	status := 0
	if resp != nil {
		status = resp.StatusCode
		// The error that the SDK makes of an answer holds its request for all to
		// print; none of the SDK's readers needs the headers of it.
		resp.Request = redact.Request(req.Raw())
	}
	if w.observe != nil {
		w.observe(observed(req, resp, calls.Call{At: time.Now(), Took: time.Since(start), Op: op, Status: status}))
	}
	if c != nil && c.write() && (resp == nil || slices.Contains(retryrepectthrottled.GetRetriableStatusCode(), status)) {
		c.passedOn.Store(true)
	}
	if err != nil && status >= http.StatusBadRequest {
		// A refusal whose body broke off is still that refusal: its status says who
		// retries it and its headers say when. Taken for a lost connection, a 429
		// would be asked again at once.
		resp.Body = http.NoBody
		if c != nil {
			c.torn.Store(true)
		}
		return resp, nil
	}
	if err != nil && req.Raw().Method == http.MethodGet && !errors.As(err, new(*weight.Unbearable)) {
		err = &lostRead{err: err}
	}
	return resp, err
}

// observed adds to a Call what it was about, for whom, and what Azure calls it.
func observed(req *policy.Request, resp *http.Response, is calls.Call) calls.Call {
	ctx := req.Raw().Context()
	if c := callOf(ctx); c != nil {
		is.Resource, is.Causes = c.resource(), calls.CausesOf(ctx)
	}
	is.RequestID, is.CorrelationID = idsOf(resp)
	return is
}

// idsOf returns what Azure calls a request, by its answer; nothing without one.
func idsOf(resp *http.Response) (requestID, correlationID string) {
	if resp == nil {
		return "", ""
	}
	return headerID(resp, "x-ms-request-id"), headerID(resp, "x-ms-correlation-request-id")
}

// headerID is an id that Azure gave a request; empty if it is none that a person could name.
func headerID(resp *http.Response, header string) string {
	if id := resp.Header.Get(header); codeRule.MatchString(id) {
		return id
	}
	return ""
}

// pinned keeps the token with Azure Resource Manager. The endpoint was checked at the
// start; this is for the addresses that answers name for polling, and for the next page.
type pinned struct{ endpoint cloud.Endpoint }

// Do implements policy.Policy.
func (p pinned) Do(req *policy.Request) (*http.Response, error) {
	if err := p.endpoint.Admits(req.Raw().URL); err != nil {
		return nil, &refused{err}
	}
	if c := callOf(req.Raw().Context()); c != nil && c.op == opList {
		if err := c.pages.next(req.Raw().URL); err != nil {
			return nil, err
		}
	}
	return req.Next()
}

// refused is an error of our own that the SDK shall not retry.
type refused struct{ error }

// Unwrap returns what is refused.
func (r *refused) Unwrap() error { return r.error }

// NonRetriable tells the SDK's retry policy to stop.
func (*refused) NonRetriable() {}

// without takes the token of the call's last request out of a text, however it is quoted.
func (c *call) without(text string) string {
	if token := c.token.Load(); token != nil && *token != "" {
		return strings.ReplaceAll(text, *token, redact.Mark)
	}
	return text
}
