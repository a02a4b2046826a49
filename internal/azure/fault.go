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

// codeOperationFailed stands for an operation that ended badly without saying why.
const codeOperationFailed = "OperationFailed"

// Codes of writes and reads that Weir itself refuses; nothing leaves.
const (
	codeInvalidID        = "InvalidID"
	codeNotRead          = "PoolNotRead"
	codeUnread           = "NotRead"
	codeNetworkInterface = "NetworkInterfacePool"
	codeNoVirtualNetwork = "NoVirtualNetwork"
	codeNoEtag           = "NoEtag"
)

// refusal is a terminal fault of our own.
func refusal(code string, err error) error {
	return fault.Classify(fault.Answer{Codes: []string{code}}, err)
}

// classify turns the error of a call into a fault. The chain keeps the SDK's error
// and, where the caller's context is done, that context's.
func classify(ctx context.Context, c *call, err error) error {
	a := answerOf(ctx, c, err, time.Now())
	cause := err
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		cause = errors.Join(err, ctxErr)
	}
	return fault.Classify(a, &callError{text: explain(c, a, err), err: cause})
}

// answerOf describes how a call failed. What is known of a write's fate depends on
// how far it came: not sent, sent without an answer, answered, or accepted.
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
		// An attempt's deadline says nothing of Azure, so the next read tells.
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
		// The operation's own end. A Retry-After here paces polls and means no more.
		a.OperationEnded = true
		if len(a.Codes) == 0 {
			a.Codes = []string{endOf(answer.RawResponse)} // its status says OK
		}
		return a
	case c.followsUp(), c.write() && success:
		// A 202 to a PUT is an error to the SDK, though Azure has taken the write.
		a.OutcomeUnknown = true
	default:
		a.TargetGone = targetGone(c, answer)
	}
	if answer.RawResponse != nil {
		a.RetryAt, _ = backoff.RetryAfter(answer.RawResponse.Header, now)
	}
	return a
}

// endOf names the end of an operation that gives no code. One that was canceled was
// not refused: another write overtook it.
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

// endStatuses are those in which a poller accepts an answer. With one of them it
// makes an error of the operation's own end alone; a 206, say, tells nothing.
var endStatuses = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent}

// namedResource finds the resources that a message names by their ARM path, with or
// without what stands before the provider.
var namedResource = regexp.MustCompile(`(?i)Microsoft\.[a-z]+(?:/[a-z0-9._-]+)+`)

// targetGone reports whether a 404 says that what was asked for, its load balancer or
// their resource group is missing. Azure answers ResourceNotFound for a load balancer and, it
// is assumed, NotFound for a pool. One that names nothing, or has no body at all, is
// about what was asked for; one that names another resource, which a write refers to,
// is an error for people. A 404 in another form is not Resource Manager's and says
// nothing: a wrong endpoint answers that, too. All resources of a group are gone with the group alone.
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

// namesTarget reports whether the first resource that a message names is the target or
// its load balancer. Others may be named to say who refers to it.
func namesTarget(c *call, message string) bool {
	first := namedResource.FindString(message)
	if first == "" {
		return c.op != opPost // an action has other parts: of them the answer may speak
	}
	path := strings.TrimRight(first, ".")
	resource := c.id.Type + "/" + c.id.Name
	return strings.EqualFold(path, resource) ||
		c.pool != "" && strings.EqualFold(path, resource+"/backendAddressPools/"+c.pool) ||
		c.child != "" && strings.EqualFold(path, resource+"/"+c.child)
}

// names reports whether a message holds a name as a word of its own.
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

// nameByte reports whether a name could go on at i. A full stop ends a sentence
// more often than it joins a name.
func nameByte(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	b := s[i]
	return b == '-' || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z'
}
