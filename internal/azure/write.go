// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// guard is the header that keeps a write from undoing somebody else's: the resource has
// to be as it was read, or not to exist if it was not. How the real service treats either
// is assumed. What is shown without an etag can be guarded by nothing.
func (c *Client) guard(etag string) http.Header {
	switch {
	case c.opts.WithoutIfMatch || etag == lb.NoEtag:
		return nil
	case etag == "":
		return http.Header{"If-None-Match": {"*"}}
	}
	return http.Header{"If-Match": {etag}}
}

// checkRead refuses to write over what was not read. What was has an etag, be it lb.NoEtag.
func (c *Client) checkRead(t target, verb string, read bool, etag string) error {
	switch {
	case !read && (etag != "" || verb == opDelete):
		return refusal(codeUnread, fmt.Errorf("%s %s: it was not read before, so what else it holds would be lost", verbs[verb], t))
	case read && etag == "" && !c.opts.WithoutIfMatch:
		return refusal(codeNoEtag, fmt.Errorf("%s %s: it has no etag to guard the write with: only what was read by itself is written", verbs[verb], t))
	}
	return nil
}

// taken is a write that Azure has taken and may still work on.
type taken[T any] struct {
	call   *call
	poller *runtime.Poller[T]
	first  *http.Response
}

// send has begin send a write guarded by an etag, and returns once Azure has taken it.
func send[T any](ctx context.Context, c *Client, this *call, etag string,
	begin func(context.Context, *sdk.Clients) (*runtime.Poller[T], error),
) (taken[T], error) {
	clients, err := c.of(this.id.SubscriptionID)
	if err != nil {
		return taken[T]{}, classify(ctx, this, err)
	}
	// The header belongs to this one request. It would travel to the polls if
	// they were made with the same context.
	a := taken[T]{call: this}
	started := policy.WithCaptureResponse(withCall(ctx, this), &a.first)
	if guard := c.guard(etag); guard != nil && this.op != opPost { // an action has nothing to guard
		started = policy.WithHTTPHeader(started, guard)
	}
	if a.poller, err = begin(started, clients); err != nil {
		return taken[T]{}, classify(ctx, this, err)
	}
	return a, nil
}

// end waits until Azure is done with the write. early looks before the first poll; nil does not.
func (a taken[T]) end(ctx context.Context, early *looks[T]) (none T, err error) {
	follow := a.call.following()
	result, err := wait(withCall(ctx, follow), follow, a.poller, a.first, early)
	if err != nil {
		return none, classify(ctx, follow, err)
	}
	return result, nil
}

// carryOut has begin send a write guarded by an etag, and waits until Azure is done with it.
func carryOut[T any](ctx context.Context, c *Client, this *call, etag string,
	begin func(context.Context, *sdk.Clients) (*runtime.Poller[T], error),
) (result T, err error) {
	a, err := send(ctx, c, this, etag, begin)
	if err != nil {
		return result, err
	}
	return a.end(ctx, nil)
}

// unlessGone makes a success of a deletion's fault that says that there is nothing left.
func unlessGone(err error) error {
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return nil
	}
	return err
}
