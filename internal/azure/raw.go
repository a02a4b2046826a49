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
	"weir.dev/weir/internal/azure/probe"
	"weir.dev/weir/internal/azure/redact"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit/backoff"
	"weir.dev/weir/internal/ratelimit/sleep"
)

// RawClient sends prebuilt requests through the Client's pipeline. It implements probe.Azure.
type RawClient struct {
	Endpoint string // Resource Manager
	pipe     runtime.Pipeline
}

// NewRawClient returns a Raw.
func (c *Client) NewRawClient() (*RawClient, error) {
	return &RawClient{Endpoint: c.armClient.Endpoint(), pipe: c.armClient.Pipeline()}, nil
}

type rawWrite struct {
	call          *call
	poller        *runtime.Poller[json.RawMessage]
	firstResponse *http.Response
}

// Send implements probe.Azure. It waits for closed gates and for Retry-After.
func (r *RawClient) Send(ctx context.Context, q probe.Request) (probe.Response, error) {
	for {
		c := &call{op: rawOpByMethod[q.Method], target: parseTarget(q.Path)}
		answer, err := r.sendOnce(withCall(ctx, c), c, q)
		if err == nil {
			return answer, nil
		}
		until, waits := retryTime(err)
		if !waits {
			return probe.Response{}, newFault(ctx, c, err)
		}
		if err := sleep.For(ctx, time.Until(until)); err != nil {
			return probe.Response{}, newFault(ctx, c, err)
		}
	}
}

var rawOpByMethod = map[string]string{http.MethodGet: opGet, http.MethodPut: opPut, http.MethodDelete: opDelete}

func (r *RawClient) sendOnce(ctx context.Context, c *call, q probe.Request) (probe.Response, error) {
	var none probe.Response
	if c.op == "" {
		return none, &nonRetriableError{fmt.Errorf("method %q is not one that a probe sends", q.Method)}
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
	answer := probe.Response{Status: resp.StatusCode, Body: decodeObject(body), Sent: sent, At: time.Now()}
	if until, named := backoff.RetryAfter(resp.Header, answer.At); named {
		answer.Wait = until.Sub(answer.At)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		answer.Codes, answer.Message = parseCodes(resp), innermostMessage(c, resp)
		return answer, nil
	}
	if !c.isWrite() {
		return answer, nil
	}
	poller, err := runtime.NewPoller[json.RawMessage](resp, r.pipe, nil)
	if err != nil {
		return none, err
	}
	answer.Operation = &rawWrite{call: c, poller: poller, firstResponse: resp}
	return answer, nil
}

func (r *RawClient) newRequest(ctx context.Context, q probe.Request) (*policy.Request, error) {
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

// Follow implements probe.Azure.
func (r *RawClient) Follow(ctx context.Context, a probe.Response) (probe.Result, error) {
	b, ok := a.Operation.(*rawWrite)
	if !ok {
		return probe.Result{}, errors.New("the response started no operation")
	}
	follow := b.call.newPoll()
	follow.finishedAt = a.At // if the operation is already finished
	_, err := waitForWrite(withCall(ctx, follow), follow, b.poller, b.firstResponse, nil)
	end := probe.Result{State: "Succeeded", RunningAt: follow.runningAt, FinishedAt: follow.finishedAt}
	if err == nil {
		return end, nil
	}
	failure := describeFailure(ctx, follow, err, time.Now())
	if !failure.OperationFailed {
		return probe.Result{}, newFault(ctx, follow, err)
	}
	end.State, end.Codes = "Failed", failure.Codes
	if slices.Contains(failure.Codes, armerror.CodeCanceled) {
		end.State = armerror.CodeCanceled
	}
	end.Message = formatError(follow, failure, err)
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

// parseTarget supports a resource group, a resource in it, and a pool.
func parseTarget(path string) target {
	var t target
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 1 {
		t.id.SubscriptionID = parts[1]
	}
	if len(parts) > 3 {
		t.id.ResourceGroup, t.id.Type, t.id.Name = parts[3], typeResourceGroup, parts[3]
	}
	if len(parts) > 7 {
		t.id.Type, t.id.Name = parts[5]+"/"+parts[6], parts[7]
	}
	if len(parts) > 9 && t.id.Type == lb.TypeLoadBalancer {
		t.pool = parts[9]
	}
	return t
}

const typeResourceGroup = "Microsoft.Resources/resourceGroups"

// decodeObject keeps numbers as written; nil if body is not an object.
func decodeObject(body []byte) probe.Object {
	var o probe.Object
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
			return redact.Line(c.redactToken(trimPermissions(list[i].Message)))
		}
	}
	return http.StatusText(resp.StatusCode)
}
