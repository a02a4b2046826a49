// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// conditionHeader returns If-Match for what was read, If-None-Match for a new resource, nothing without an
// etag. That the real service honors them is assumed.
func (d *documentClient) conditionHeader(etag string) http.Header {
	switch {
	case d.withoutIfMatch || etag == lb.NoEtag:
		return nil
	case etag == "":
		return http.Header{"If-None-Match": {"*"}}
	}
	return http.Header{"If-Match": {etag}}
}

// checkRead rejects a write that would overwrite unread properties.
func (d *documentClient) checkRead(t target, verb string, read bool, etag string) error {
	switch {
	case !read && (etag != "" || verb == opDelete):
		return rejectRequest(codeResourceNotRead, fmt.Errorf("%s %s: it was not read before, so what else it holds would be lost", verbs[verb], t))
	case read && etag == "" && !d.withoutIfMatch:
		return rejectRequest(codeNoEtag, fmt.Errorf("%s %s: it has no etag to guard the write: only a resource that was read individually is written", verbs[verb], t))
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

func (r request) encodeBody() (any, error) {
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
		code = codeResourceNotRead
	}
	return nil, rejectRequest(code, fmt.Errorf("write %s: %w", r.call.target, err))
}

type acceptedWrite struct {
	call          *call
	version       string
	poller        *runtime.Poller[json.RawMessage]
	firstResponse *http.Response
	etag          string // in the first response
}

// startWrite sends a write and returns once Azure has accepted it.
func (d *documentClient) startWrite(ctx context.Context, r request) (acceptedWrite, error) {
	body, err := r.encodeBody()
	if err != nil {
		return acceptedWrite{}, err
	}
	version, read := d.resourceVersion(r.call.target), ""
	if r.origin != nil {
		read = codec.VersionOf(*r.origin)
	}
	if read == "" {
		return d.sendWrite(ctx, r, version, body)
	}
	if read < version {
		return d.writeWithVersion(ctx, r, version, nil)
	}
	a, err := d.sendWrite(ctx, r, read, body)
	if newer := requiredVersion(err, read); newer != "" {
		return d.writeWithVersion(ctx, r, newer, err)
	}
	return a, err
}

func (d *documentClient) sendWrite(ctx context.Context, r request, version string, body any) (acceptedWrite, error) {
	// The header is for this request only; polls with the same context would send it too.
	a := acceptedWrite{call: r.call, version: version}
	started := policy.WithCaptureResponse(withCall(ctx, r.call), &a.firstResponse)
	if guard := d.conditionHeader(r.etag); guard != nil && r.call.op != opPost && r.call.op != opHealth { // an action has nothing to guard
		started = policy.WithHTTPHeader(started, guard)
	}
	resp, err := d.sendRequest(started, r.method, r.path, version, body) //nolint:bodyclose // the pipeline has read the body to its end
	if err == nil {
		resp, a.etag = shortenResponse(resp) //nolint:bodyclose // its body is in memory
		a.poller, err = runtime.NewPoller(resp, d.armClients.forPath(r.path).Pipeline(), &runtime.NewPollerOptions[json.RawMessage]{
			FinalStateVia: runtime.FinalStateViaAzureAsyncOp, // an action needs no final GET; a PUT is read again
			Tracer:        d.armClients.own.Tracer(),
		})
	}
	if err != nil {
		return acceptedWrite{}, newFault(ctx, r.call, err)
	}
	return a, nil
}

// shortenResponse returns the etag in a response, and a response with the state alone: the SDK would decode all
// of it to find the state. A failure, and a response that is the result, remain complete.
func shortenResponse(resp *http.Response) (short *http.Response, etag string) {
	payload, err := runtime.Payload(resp)
	header, ok := codec.ScanHeader(payload)
	if err != nil || !ok || !json.Valid(payload) {
		return resp, codec.ResponseEtag(resp)
	}
	method := resp.Request.Method
	if method != http.MethodPut && method != http.MethodPatch || resp.Header.Get(headerAsyncOperation) == "" || !slices.Contains(goodStates, header.State) {
		return resp, header.Etag
	}
	next := *resp
	next.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"properties":{"provisioningState":%q}}`, header.State)))
	return &next, header.Etag
}

// headerAsyncOperation is the URL of an operation; the SDK reads its result again.
const headerAsyncOperation = "Azure-AsyncOperation"

var goodStates = []string{"", string(lb.Succeeded), string(lb.Updating)}

// waitResult waits for the end of the write and returns the document; empty after a deletion or an action.
// early may be nil.
func (a acceptedWrite) waitResult(ctx context.Context, early *earlyReader) (codec.Document, error) {
	poll := a.call.newPoll()
	result, err := waitForWrite(withCall(ctx, poll), poll, a.poller, a.firstResponse, early)
	if err != nil {
		return codec.Document{}, newFault(ctx, poll, err)
	}
	if a.call.op == opDelete || a.call.op == opPost {
		return codec.Document{}, nil
	}
	return checkDocument(a.call.target, codec.Document{Version: a.version, Text: result})
}

func (d *documentClient) writeAndWait(ctx context.Context, r request) (codec.Document, error) {
	a, err := d.startWrite(ctx, r)
	if err != nil {
		return codec.Document{}, err
	}
	return a.waitResult(ctx, nil)
}

func newPut(t target, origin *any, etag string, body func() (any, error)) request {
	return request{
		call: &call{op: opPut, target: t, isCreate: *origin == nil}, method: http.MethodPut, path: t.armID(),
		etag: etag, origin: origin, body: body,
	}
}

// deleteResource deletes a resource that was read and waits for the end. A missing one is no error.
func (d *documentClient) deleteResource(ctx context.Context, t target, origin any, etag string) error {
	if err := d.checkRead(t, opDelete, origin != nil, etag); err != nil {
		return err
	}
	_, err := d.writeAndWait(ctx, request{call: &call{op: opDelete, target: t}, method: http.MethodDelete, path: t.armID(), etag: etag})
	if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
		return nil
	}
	return err
}
