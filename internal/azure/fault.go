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

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lead"
)

const codeOperationFailed = "OperationFailed"

// Codes of requests that Weir rejects before sending.
const (
	codeInvalidID        = "InvalidID"
	codeNotRead          = "PoolNotRead"
	codeUnread           = "NotRead"
	codeNetworkInterface = "NetworkInterfacePool"
	codeNoVirtualNetwork = "NoVirtualNetwork"
	codeNoEtag           = "NoEtag"
)

// refusal returns a terminal fault.
func refusal(code string, err error) error {
	return fault.Classify(fault.Answer{Codes: []string{code}}, err)
}

// classify returns the *fault.Fault of a failed call. The chain keeps the SDK's error and the error
// of ctx.
func classify(ctx context.Context, c *call, err error) error {
	a := answerOf(ctx, c, err, time.Now())
	cause := err
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		cause = errors.Join(err, ctxErr)
	}
	return fault.Classify(a, &callError{text: explain(c, a, err), err: cause})
}

// answerOf describes a failure. The possible outcome of a write depends on its progress: not sent,
// sent without a response, answered, or accepted.
func answerOf(ctx context.Context, c *call, err error, now time.Time) fault.Answer {
	if gate, ok := errors.AsType[*gateClosed](err); ok {
		return fault.Answer{GateClosed: true, MayLand: c.passedOn.Load(), RetryAt: gate.until}
	}
	if rest, ok := errors.AsType[*resting](err); ok {
		return fault.Answer{Resting: !c.followsUp(), OutcomeUnknown: c.followsUp(), MayLand: c.passedOn.Load(), RetryAt: rest.until}
	}
	if errors.Is(err, lead.ErrNotLeading) {
		return fault.Answer{Stopping: true, MayLand: c.passedOn.Load()}
	}
	answer, answered := errors.AsType[*azcore.ResponseError](err)
	if !answered {
		// A deadline of our own is no answer from Azure; the next read resolves the outcome.
		late := errors.Is(ctx.Err(), context.DeadlineExceeded)
		unknown := late || c.followsUp() || c.write() && c.sent.Load()
		return fault.Answer{OutcomeUnknown: unknown, Unreachable: !unknown && errors.As(err, new(*lostRead))}
	}
	a := fault.Answer{MayLand: c.passedOn.Load(), Status: answer.StatusCode, Codes: codesOf(answer.RawResponse)}
	a.RequestID, a.CorrelationID = idsOf(answer.RawResponse)
	for _, e := range errorsOf(answer.RawResponse) {
		a.Message += e.Message + "\n"
	}
	if len(a.Codes) == 0 && codeRule.MatchString(answer.ErrorCode) {
		a.Codes = []string{answer.ErrorCode}
	}
	success := answer.StatusCode >= 200 && answer.StatusCode < 300
	switch {
	case c.followsUp() && slices.Contains(endStatuses, answer.StatusCode):
		// The operation's own result; Retry-After only paces polls.
		a.OperationEnded = true
		if len(a.Codes) == 0 {
			a.Codes = []string{endOf(answer.RawResponse)} // its HTTP status is a success
		}
		return a
	case c.followsUp(), c.write() && success:
		// The SDK treats a 202 to a PUT as an error, but Azure has accepted the write.
		a.OutcomeUnknown = true
	default:
		a.TargetGone = targetGone(c, answer)
	}
	if answer.RawResponse != nil {
		a.RetryAt, _ = backoff.RetryAfter(answer.RawResponse.Header, now)
	}
	return a
}

// endOf returns the code of a finished operation without one. Canceled means superseded, not
// rejected.
func endOf(resp *http.Response) string {
	var end struct {
		Status     string `json:"status"`
		Properties struct {
			State string `json:"provisioningState"`
		} `json:"properties"`
	}
	if body, err := runtime.Payload(resp); err == nil && json.Unmarshal(body, &end) == nil {
		for _, state := range []string{end.Status, end.Properties.State} {
			if strings.EqualFold(state, fault.CodeCanceled) || strings.EqualFold(state, "Cancelled") {
				return fault.CodeCanceled
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

// targetGone reports whether a 404 means that the target, its load balancer or their resource group
// does not exist. Azure answers ResourceNotFound for a load balancer and (assumed) NotFound for a
// pool. A 404 without a resource or a body concerns the target, one with another resource is a
// configuration error, and other formats are not from Resource Manager. A list needs only its
// group.
func targetGone(c *call, answer *azcore.ResponseError) bool {
	if answer.StatusCode != http.StatusNotFound || c.torn.Load() || c.creates {
		return false
	}
	if body, err := runtime.Payload(answer.RawResponse); err == nil && len(bytes.TrimSpace(body)) == 0 {
		return c.id.Name != ""
	}
	for _, e := range errorsOf(answer.RawResponse) {
		switch e.Code {
		case "ResourceGroupNotFound":
			return !c.write() || names(e.Message, c.id.ResourceGroup)
		case "ResourceNotFound", "NotFound", "ParentResourceNotFound":
			return c.id.Name != "" && namesTarget(c, e.Message)
		}
	}
	return false
}

// namesTarget considers only the first resource in a message; later ones may be referrers.
func namesTarget(c *call, message string) bool {
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

func names(message, name string) bool {
	message, name = strings.ToLower(message), strings.ToLower(name)
	for from := 0; ; {
		at := strings.Index(message[from:], name)
		if at < 0 {
			return false
		}
		at += from
		if !nameByte(message, at-1) && !nameByte(message, at+len(name)) {
			return true
		}
		from = at + 1
	}
}

// nameByte treats a period as the end of a sentence.
func nameByte(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	b := s[i]
	return b == '-' || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z'
}
