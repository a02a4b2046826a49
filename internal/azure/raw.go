// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// RawObject is a JSON object.
type RawObject = map[string]any

// RawRequest is one request.
type RawRequest struct {
	Method  string
	Path    string
	Version string
	Filter  string
	// Link is the next page of a list and replaces Path, Version and Filter.
	Link                 string
	IfMatch, IfNoneMatch string
	Body                 RawObject
}

// RawResponse is a response.
type RawResponse struct {
	Status int
	// Codes are outermost first.
	Codes    []string
	Message  string
	Body     RawObject
	Sent, At time.Time
	// Wait is Retry-After, or zero.
	Wait time.Duration
	// Operation is the operation to Follow, or nil.
	Operation any
}

// IsAccepted reports whether the status is a success.
func (r RawResponse) IsAccepted() bool { return r.Status >= 200 && r.Status < 300 }

// RawResult is the result of an operation.
type RawResult struct {
	State   string
	Codes   []string
	Message string
	// RunningAt is when it was last in progress, the other one when it was finished.
	RunningAt, FinishedAt time.Time
}

// RawClient sends prebuilt requests through the Client's pipeline.
type RawClient struct {
	Endpoint string // Resource Manager
	pipe     runtime.Pipeline
}

// NewRawClient returns a RawClient.
func (c *Client) NewRawClient() (*RawClient, error) {
	return &RawClient{Endpoint: c.armClients.own.Endpoint(), pipe: c.armClients.own.Pipeline()}, nil
}

type rawWrite struct {
	call          *call
	poller        *runtime.Poller[json.RawMessage]
	firstResponse *http.Response
}

// Send sends a request and returns the response, whatever its status. It waits for closed gates and for Retry-After.
func (r *RawClient) Send(ctx context.Context, q RawRequest) (RawResponse, error) {
	for {
		c := &call{op: rawOpByMethod[q.Method], target: parseTarget(q.Path)}
		resp, err := r.sendOnce(withCall(ctx, c), c, q)
		if err == nil {
			return resp, nil
		}
		until, ok := retryTime(err)
		if !ok {
			return RawResponse{}, newFault(ctx, c, err)
		}
		if err := ratelimit.Sleep(ctx, time.Until(until)); err != nil {
			return RawResponse{}, newFault(ctx, c, err)
		}
	}
}

var rawOpByMethod = map[string]string{http.MethodGet: opGet, http.MethodPut: opPut, http.MethodDelete: opDelete}

func (r *RawClient) sendOnce(ctx context.Context, c *call, q RawRequest) (RawResponse, error) {
	var none RawResponse
	if c.op == "" {
		return none, &nonRetriableError{fmt.Errorf("method %q is not supported", q.Method)}
	}
	req, err := r.newRequest(ctx, q)
	if err != nil {
		return none, err
	}
	sent := time.Now()
	resp, err := r.pipe.Do(req)
	if err != nil {
		return none, err
	}
	defer func() { _ = resp.Body.Close() }() // the body is in memory
	body, err := runtime.Payload(resp)
	if err != nil {
		return none, err
	}
	response := RawResponse{Status: resp.StatusCode, Body: decodeObject(body), Sent: sent, At: time.Now()}
	if until, named := ratelimit.RetryAfter(resp.Header, response.At); named {
		response.Wait = until.Sub(response.At)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		response.Codes, response.Message = parseCodes(resp), innermostMessage(c, resp)
		return response, nil
	}
	if !c.isWrite() {
		return response, nil
	}
	poller, err := runtime.NewPoller[json.RawMessage](resp, r.pipe, nil)
	if err != nil {
		return none, err
	}
	response.Operation = &rawWrite{call: c, poller: poller, firstResponse: resp}
	return response, nil
}

func (r *RawClient) newRequest(ctx context.Context, q RawRequest) (*policy.Request, error) {
	at := runtime.JoinPaths(r.Endpoint, q.Path)
	if q.Link != "" {
		at = q.Link
	}
	req, err := runtime.NewRequest(ctx, q.Method, at)
	if err != nil {
		return nil, err
	}
	if q.Link == "" {
		query := url.Values{"api-version": {q.Version}}
		if q.Filter != "" {
			query.Set("$filter", q.Filter)
		}
		req.Raw().URL.RawQuery = query.Encode()
	}
	header := req.Raw().Header
	header.Set("Accept", "application/json")
	if q.IfMatch != "" {
		header.Set("If-Match", q.IfMatch)
	}
	if q.IfNoneMatch != "" {
		header.Set("If-None-Match", q.IfNoneMatch)
	}
	if q.Body != nil {
		return req, runtime.MarshalAsJSON(req, q.Body)
	}
	return req, nil
}

// Follow polls an operation. An error means that its outcome is unknown.
func (r *RawClient) Follow(ctx context.Context, a RawResponse) (RawResult, error) {
	b, ok := a.Operation.(*rawWrite)
	if !ok {
		return RawResult{}, errors.New("the response started no operation")
	}
	poll := b.call.newPoll()
	poll.finishedAt = a.At // if the operation is already finished
	_, err := waitForWrite(withCall(ctx, poll), poll, b.poller, b.firstResponse, nil)
	end := RawResult{State: "Succeeded", RunningAt: poll.runningAt, FinishedAt: poll.finishedAt}
	if err == nil {
		return end, nil
	}
	failure := describeFailure(ctx, poll, err, time.Now())
	if !failure.OperationFailed {
		return RawResult{}, newFault(ctx, poll, err)
	}
	end.State, end.Codes = "Failed", failure.Codes
	if slices.Contains(failure.Codes, armerror.CodeCanceled) {
		end.State = armerror.CodeCanceled
	}
	end.Message = formatError(poll, failure, err)
	return end, nil
}

// retryTime returns false for requests that were sent or rejected permanently.
func retryTime(err error) (time.Time, bool) {
	if gate, ok := errors.AsType[*gateClosedError](err); ok {
		return gate.until, true
	}
	if rest, ok := errors.AsType[*retryAfterError](err); ok {
		return rest.until, true
	}
	return time.Time{}, false
}

// parseTarget returns the target of a path: a resource group, a resource in it, or a pool. A list, such as the
// permissions of a resource or the locations of a subscription, is named by its last segment.
func parseTarget(path string) target {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at, list := parts, ""
	switch n := len(parts); {
	case n > 4 && parts[n-2] == "Microsoft.Authorization":
		at, list = parts[:n-3], parts[n-1]
	case n == 3, n == 7 && parts[2] == "providers":
		at, list = parts[:2], parts[n-1]
	}
	var t target
	if len(at) > 1 {
		t.id.SubscriptionID = at[1]
	}
	if len(at) > 3 {
		t.id.ResourceGroup, t.id.Type, t.id.Name = at[3], typeResourceGroup, at[3]
	}
	if len(at) > 7 {
		t.id.Type, t.id.Name = at[5]+"/"+at[6], at[7]
	}
	if len(at) > 9 && t.id.Type == lb.TypeLoadBalancer {
		t.pool = at[9]
	}
	if t.list = list; list != "" {
		t.path = path
	}
	return t
}

const typeResourceGroup = "Microsoft.Resources/resourceGroups"

// decodeObject keeps numbers as written; nil if body is not an object.
func decodeObject(body []byte) RawObject {
	var o RawObject
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	if dec.Decode(&o) != nil {
		return nil
	}
	return o
}

func innermostMessage(c *call, resp *http.Response) string {
	list := parseErrors(resp)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Message != "" {
			return redactLine(c.redactToken(trimPermissions(list[i].Message)))
		}
	}
	return http.StatusText(resp.StatusCode)
}
