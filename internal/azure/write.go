// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// guard returns If-Match for what was read, If-None-Match for a new resource, nothing without an
// etag. That the real service honors them is assumed.
func (d *documents) guard(etag string) http.Header {
	switch {
	case d.withoutIfMatch || etag == lb.NoEtag:
		return nil
	case etag == "":
		return http.Header{"If-None-Match": {"*"}}
	}
	return http.Header{"If-Match": {etag}}
}

// checkRead rejects a write that would overwrite unread properties.
func (d *documents) checkRead(t target, verb string, read bool, etag string) error {
	switch {
	case !read && (etag != "" || verb == opDelete):
		return refusal(codeUnread, fmt.Errorf("%s %s: it was not read before, so what else it holds would be lost", verbs[verb], t))
	case read && etag == "" && !d.withoutIfMatch:
		return refusal(codeNoEtag, fmt.Errorf("%s %s: it has no etag to guard the write with: only what was read by itself is written", verbs[verb], t))
	}
	return nil
}

type request struct {
	call         *call
	method, path string
	etag         string
	// origin points to the document that was read, or to nil for a new resource.
	origin *any
	// body returns an edit of origin; nil sends none.
	body func() (any, error)
}

func (r request) encoded() (any, error) {
	if r.body == nil {
		return nil, nil
	}
	body, err := r.body()
	if err == nil {
		return body, nil
	}
	code := "OtherShape"
	switch {
	case errors.Is(err, codec.ErrNoVirtualNetwork):
		code = codeNoVirtualNetwork
	case errors.Is(err, codec.ErrNotRead):
		code = codeUnread
	}
	return nil, refusal(code, fmt.Errorf("write %s: %w", r.call.target, err))
}

type taken struct {
	call    *call
	version string
	poller  *runtime.Poller[json.RawMessage]
	first   *http.Response
}

// begin sends a write and returns once Azure has accepted it.
func (d *documents) begin(ctx context.Context, r request) (taken, error) {
	body, err := r.encoded()
	if err != nil {
		return taken{}, err
	}
	version, read := d.version(r.call.target), ""
	if r.origin != nil {
		read = codec.VersionOf(*r.origin)
	}
	if read == "" {
		return d.try(ctx, r, version, body)
	}
	if read < version {
		return d.beginWith(ctx, r, version, nil)
	}
	a, err := d.try(ctx, r, read, body)
	if newer := newerVersion(err, read); newer != "" {
		return d.beginWith(ctx, r, newer, err)
	}
	return a, err
}

func (d *documents) try(ctx context.Context, r request, version string, body any) (taken, error) {
	// The header is for this request only; polls with the same context would send it too.
	a := taken{call: r.call, version: version}
	started := policy.WithCaptureResponse(withCall(ctx, r.call), &a.first)
	if guard := d.guard(r.etag); guard != nil && r.call.op != opPost { // an action has nothing to guard
		started = policy.WithHTTPHeader(started, guard)
	}
	resp, err := d.send(started, r.method, r.path, version, body) //nolint:bodyclose // the pipeline has read the body to its end
	if err == nil {
		a.poller, err = runtime.NewPoller(resp, d.plain.Pipeline(), &runtime.NewPollerOptions[json.RawMessage]{
			FinalStateVia: runtime.FinalStateViaAzureAsyncOp, // an action needs no final GET; a PUT is read again
			Tracer:        d.plain.Tracer(),
		})
	}
	if err != nil {
		return taken{}, classify(ctx, r.call, err)
	}
	return a, nil
}

// end waits for the end of the write and returns the document; empty after a deletion or an action.
// early may be nil.
func (a taken) end(ctx context.Context, early *looks) (codec.Document, error) {
	follow := a.call.following()
	result, err := wait(withCall(ctx, follow), follow, a.poller, a.first, early)
	if err != nil {
		return codec.Document{}, classify(ctx, follow, err)
	}
	if a.call.op == opDelete || a.call.op == opPost {
		return codec.Document{}, nil
	}
	return document(a.call.target, codec.Document{Version: a.version, Text: result})
}

func (d *documents) carryOut(ctx context.Context, r request) (codec.Document, error) {
	a, err := d.begin(ctx, r)
	if err != nil {
		return codec.Document{}, err
	}
	return a.end(ctx, nil)
}

func put(t target, origin *any, etag string, body func() (any, error)) request {
	return request{
		call: &call{op: opPut, target: t, creates: *origin == nil}, method: http.MethodPut, path: t.resource(),
		etag: etag, origin: origin, body: body,
	}
}

// remove deletes a resource that was read and waits for the end. A missing one is no error.
func (d *documents) remove(ctx context.Context, t target, origin any, etag string) error {
	if err := d.checkRead(t, opDelete, origin != nil, etag); err != nil {
		return err
	}
	_, err := d.carryOut(ctx, request{call: &call{op: opDelete, target: t}, method: http.MethodDelete, path: t.resource(), etag: etag})
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return nil
	}
	return err
}
