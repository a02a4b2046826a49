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

	"weir.dev/weir/internal/azure/redact"
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/probe"
	"weir.dev/weir/internal/sleep"
)

// Raw sends prebuilt requests through the Client's pipeline. It implements probe.Azure.
type Raw struct {
	Endpoint string // Resource Manager
	pipe     runtime.Pipeline
}

// Raw returns a Raw.
func (c *Client) Raw() (*Raw, error) {
	return &Raw{Endpoint: c.plain.Endpoint(), pipe: c.plain.Pipeline()}, nil
}

type begun struct {
	call   *call
	poller *runtime.Poller[json.RawMessage]
	first  *http.Response
}

// Send implements probe.Azure. It waits for closed gates and for Retry-After.
func (r *Raw) Send(ctx context.Context, q probe.Request) (probe.Answer, error) {
	for {
		c := &call{op: opOf[q.Method], target: targetOf(q.Path)}
		answer, err := r.once(withCall(ctx, c), c, q)
		if err == nil {
			return answer, nil
		}
		until, waits := notBefore(err)
		if !waits {
			return probe.Answer{}, classify(ctx, c, err)
		}
		if err := sleep.For(ctx, time.Until(until)); err != nil {
			return probe.Answer{}, classify(ctx, c, err)
		}
	}
}

var opOf = map[string]string{http.MethodGet: opGet, http.MethodPut: opPut, http.MethodDelete: opDelete}

func (r *Raw) once(ctx context.Context, c *call, q probe.Request) (probe.Answer, error) {
	var none probe.Answer
	if c.op == "" {
		return none, &refused{fmt.Errorf("method %q is not one that a probe sends", q.Method)}
	}
	req, err := r.request(ctx, q)
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
	answer := probe.Answer{Status: resp.StatusCode, Body: objectOf(body), Sent: sent, At: time.Now()}
	if until, named := backoff.RetryAfter(resp.Header, answer.At); named {
		answer.Wait = until.Sub(answer.At)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		answer.Codes, answer.Message = codesOf(resp), messageOf(c, resp)
		return answer, nil
	}
	if !c.write() {
		return answer, nil
	}
	poller, err := runtime.NewPoller[json.RawMessage](resp, r.pipe, nil)
	if err != nil {
		return none, err
	}
	answer.Begun = &begun{call: c, poller: poller, first: resp}
	return answer, nil
}

func (r *Raw) request(ctx context.Context, q probe.Request) (*policy.Request, error) {
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
func (r *Raw) Follow(ctx context.Context, a probe.Answer) (probe.End, error) {
	b, ok := a.Begun.(*begun)
	if !ok {
		return probe.End{}, errors.New("the answer began nothing")
	}
	follow := b.call.following()
	follow.over = a.At // if the operation is already finished
	_, err := wait(withCall(ctx, follow), follow, b.poller, b.first, nil)
	end := probe.End{State: "Succeeded", Running: follow.running, Over: follow.over}
	if err == nil {
		return end, nil
	}
	failure := answerOf(ctx, follow, err, time.Now())
	if !failure.OperationEnded {
		return probe.End{}, classify(ctx, follow, err)
	}
	end.State, end.Codes = "Failed", failure.Codes
	if slices.Contains(failure.Codes, fault.CodeCanceled) {
		end.State = fault.CodeCanceled
	}
	end.Message = explain(follow, failure, err)
	return end, nil
}

// notBefore returns false for requests that were sent or rejected permanently.
func notBefore(err error) (time.Time, bool) {
	if gate, ok := errors.AsType[*gateClosed](err); ok {
		return gate.until, true
	}
	if rest, ok := errors.AsType[*resting](err); ok {
		return rest.until, true
	}
	return time.Time{}, false
}

// targetOf supports a resource group, a resource in it, and a pool.
func targetOf(path string) target {
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

// objectOf keeps numbers as written; nil if body is not an object.
func objectOf(body []byte) probe.Object {
	var o probe.Object
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	if dec.Decode(&o) != nil {
		return nil
	}
	return o
}

func messageOf(c *call, resp *http.Response) string {
	list := errorsOf(resp)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Message != "" {
			return redact.Line(c.without(lacks(list[i].Message)))
		}
	}
	return http.StatusText(resp.StatusCode)
}
