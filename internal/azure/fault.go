// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/ratelimit"
)

const codeOperationFailed = "OperationFailed"

// Codes of requests that Weir rejects before sending.
const (
	codeInvalidID        = "InvalidID"
	codeNotRead          = "PoolNotRead"
	codeResourceNotRead  = "NotRead"
	codeNetworkInterface = "NetworkInterfacePool"
	codeNoVirtualNetwork = "NoVirtualNetwork"
	codeNoEtag           = "NoEtag"
)

// rejectRequest returns a terminal fault.
func rejectRequest(code string, err error) error {
	return armerror.Classify(armerror.Failure{Codes: []string{code}}, err)
}

// newFault returns the *armerror.Fault of a failed call. The chain keeps the SDK's error and the error
// of ctx.
func newFault(ctx context.Context, c *call, err error) error {
	a := describeFailure(ctx, c, err, time.Now())
	cause := err
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		cause = errors.Join(err, ctxErr)
	}
	return armerror.Classify(a, &callError{text: formatError(c, a, err), err: cause})
}

// describeFailure describes a failure. The possible outcome of a write depends on its progress: not sent,
// sent without a response, answered, or accepted.
func describeFailure(ctx context.Context, c *call, err error, now time.Time) armerror.Failure {
	if gate, ok := errors.AsType[*gateClosedError](err); ok {
		return armerror.Failure{GateClosed: true, MayBeApplied: c.mayBeApplied.Load(), RetryAt: gate.until}
	}
	if rest, ok := errors.AsType[*retryAfterError](err); ok {
		return armerror.Failure{RetryAfterPending: !c.isPoll(), ResultUnknown: c.isPoll(), MayBeApplied: c.mayBeApplied.Load(), RetryAt: rest.until}
	}
	if errors.Is(err, leader.ErrNotLeader) {
		return armerror.Failure{IsShutdown: true, MayBeApplied: c.mayBeApplied.Load()}
	}
	if errors.As(err, new(*signInError)) && !c.isPoll() { // rejected, so not applied
		return armerror.Failure{MayBeApplied: c.mayBeApplied.Load()}
	}
	resp, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		// A deadline of our own is no answer from Azure; the next read resolves the outcome.
		late := errors.Is(ctx.Err(), context.DeadlineExceeded)
		unknown := late || c.isPoll() || c.isWrite() && c.sent.Load()
		return armerror.Failure{ResultUnknown: unknown, NoResponse: !unknown && errors.As(err, new(*noResponseError))}
	}
	a := armerror.Failure{MayBeApplied: c.mayBeApplied.Load(), Status: resp.StatusCode, Codes: parseCodes(resp.RawResponse)}
	a.RequestID, a.CorrelationID = requestIDs(resp.RawResponse)
	for _, e := range parseErrors(resp.RawResponse) {
		a.Message += e.Message + "\n"
	}
	if len(a.Codes) == 0 && codeRule.MatchString(resp.ErrorCode) {
		a.Codes = []string{resp.ErrorCode}
	}
	success := resp.StatusCode >= 200 && resp.StatusCode < 300
	switch {
	case c.isPoll() && slices.Contains(endStatuses, resp.StatusCode):
		// The operation's own result; Retry-After only paces polls.
		a.OperationFailed = true
		if len(a.Codes) == 0 {
			a.Codes = []string{resultCode(resp.RawResponse)} // its HTTP status is a success
		}
		return a
	case c.isPoll(), c.isWrite() && success:
		// The SDK treats a 202 to a PUT as an error, but Azure has accepted the write.
		a.ResultUnknown = true
	default:
		a.TargetMissing = isTargetMissing(c, resp)
	}
	if resp.RawResponse != nil {
		a.RetryAt, _ = ratelimit.RetryAfter(resp.RawResponse.Header, now)
	}
	return a
}

// resultCode returns the code of a finished operation without one. Canceled means superseded, not
// rejected.
func resultCode(resp *http.Response) string {
	var end struct {
		Status     string `json:"status"`
		Properties struct {
			State string `json:"provisioningState"`
		} `json:"properties"`
	}
	if body, err := runtime.Payload(resp); err == nil && json.Unmarshal(body, &end) == nil {
		for _, state := range []string{end.Status, end.Properties.State} {
			if strings.EqualFold(state, armerror.CodeCanceled) || strings.EqualFold(state, "Cancelled") {
				return armerror.CodeCanceled
			}
		}
	}
	return codeOperationFailed
}

// endStatuses are the poll statuses with which the SDK reports the operation's own result.
var endStatuses = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent}

// namedResource matches ARM resource paths in messages, with or without the part before the
// provider.
var namedResource = regexp.MustCompile(`(?i)Microsoft\.[a-z]+(?:/[a-z0-9._-]+)+`)

// isTargetMissing reports whether a 404 means that the target, its load balancer or their resource group
// does not exist. Azure answers ResourceNotFound for a load balancer and (assumed) NotFound for a
// pool. A 404 without a resource or a body concerns the target, one with another resource is a
// configuration error, and other formats are not from Resource Manager. A list needs only its
// group.
func isTargetMissing(c *call, resp *azcore.ResponseError) bool {
	if resp.StatusCode != http.StatusNotFound || c.isTruncated.Load() || c.isCreate {
		return false
	}
	if body, err := runtime.Payload(resp.RawResponse); err == nil && len(bytes.TrimSpace(body)) == 0 {
		return c.id.Name != ""
	}
	for _, e := range parseErrors(resp.RawResponse) {
		switch e.Code {
		case "ResourceGroupNotFound":
			return !c.isWrite() || containsName(e.Message, c.id.ResourceGroup)
		case "ResourceNotFound", "NotFound", "ParentResourceNotFound":
			return c.id.Name != "" && isTargetNamed(c, e.Message)
		}
	}
	return false
}

// isTargetNamed considers only the first resource in a message; later ones may be referrers.
func isTargetNamed(c *call, message string) bool {
	first := namedResource.FindString(message)
	if first == "" {
		return c.op != opPost // for an action, the 404 may concern a child
	}
	path := strings.TrimRight(first, ".")
	resource := c.id.Type + "/" + c.id.Name
	return strings.EqualFold(path, resource) ||
		c.pool != "" && strings.EqualFold(path, resource+"/backendAddressPools/"+c.pool) ||
		c.child != "" && strings.EqualFold(path, resource+"/"+c.child)
}

func containsName(message, name string) bool {
	message, name = strings.ToLower(message), strings.ToLower(name)
	for from := 0; ; {
		at := strings.Index(message[from:], name)
		if at < 0 {
			return false
		}
		at += from
		if !isNameByte(message, at-1) && !isNameByte(message, at+len(name)) {
			return true
		}
		from = at + 1
	}
}

// isNameByte treats a period as the end of a sentence.
func isNameByte(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	b := s[i]
	return b == '-' || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z'
}
