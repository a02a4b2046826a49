// SPDX-License-Identifier: Apache-2.0

package armerror

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

// failureCase is a failure and its expected classification.
type failureCase struct {
	name   string
	answer Failure
	rule   string
	class  Class
	code   string
}

var retryAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Each entry names the expected rule. Most also match a later one, because the order matters.
var failureCases = []failureCase{
	{"stopping says so before anything else", Failure{IsShutdown: true, GateClosed: true, ResultUnknown: true}, "worker is stopping", Shutdown, CodeShutdown},
	{"closed gate", Failure{GateClosed: true, RetryAt: retryAt}, "gate closed", Retriable, CodeGateClosed},
	{"closed gate says so before anything else", Failure{GateClosed: true, Status: 404, TargetMissing: true}, "gate closed", Retriable, CodeGateClosed},
	{"told to wait before", Failure{RetryAfterPending: true, RetryAt: retryAt}, "not read yet", Retriable, CodeRetryAfter},
	{"operation superseded", Failure{OperationFailed: true, Status: 200, Codes: []string{"Canceled", "CanceledAndSupersededDueToAnotherOperation"}}, "operation ended, retriable code", Retriable, "CanceledAndSupersededDueToAnotherOperation"},
	{"operation of the compute provider superseded", Failure{OperationFailed: true, Status: 200, Codes: []string{"OperationPreempted"}}, "operation ended, retriable code", Retriable, "OperationPreempted"},
	{"operation asks to come again", Failure{OperationFailed: true, Codes: []string{"RetryableError"}}, "operation ended, retriable code", Retriable, "RetryableError"},
	{"operation met another", Failure{OperationFailed: true, Codes: []string{"AnotherOperationInProgress"}}, "operation ended, retriable code", Retriable, "AnotherOperationInProgress"},
	{"operation throttled", Failure{OperationFailed: true, Codes: []string{"TooManyRequests"}}, "operation ended, retriable code", Retriable, "TooManyRequests"},
	{"operation met a newer etag", Failure{OperationFailed: true, Codes: []string{"PreconditionFailed"}}, "operation ended, retriable code", Retriable, "PreconditionFailed"},
	{"operation met a newer etag, in other words", Failure{OperationFailed: true, Codes: []string{"PreconditionFailedEtagMismatch"}}, "operation ended, retriable code", Retriable, "PreconditionFailedEtagMismatch"},
	{"operation met what only sounds like it", Failure{OperationFailed: true, Codes: []string{"FailedPrecondition"}}, "operation ended, other code", Terminal, "FailedPrecondition"},
	{"operation canceled without a word", Failure{OperationFailed: true, Status: 200, Codes: []string{"Canceled"}}, "operation ended, retriable code", Retriable, "Canceled"},
	{"operation canceled for a reason", Failure{OperationFailed: true, Codes: []string{"Canceled", "InvalidParameter"}}, "operation ended, other code", Terminal, "InvalidParameter"},
	{"operation failed", Failure{OperationFailed: true, Status: 200, Codes: []string{"InvalidParameter"}}, "operation ended, other code", Terminal, "InvalidParameter"},
	{"operation failed without a word", Failure{OperationFailed: true, Status: 200}, "operation ended, other code", Terminal, "OK"},
	{"operation throttled as a detail of a failure", Failure{OperationFailed: true, Codes: []string{"Failed", "TooManyRequests"}}, "operation ended, retriable code", Retriable, "TooManyRequests"},
	{"lost answer", Failure{ResultUnknown: true}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"a 404 to a poll says nothing of the pool", Failure{ResultUnknown: true, Status: 404, TargetMissing: true}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"a 500 to a poll", Failure{ResultUnknown: true, Status: 500}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"pool gone", Failure{Status: 404, TargetMissing: true, Codes: []string{"NotFound"}}, "the pool or load balancer does not exist", Stale, "NotFound"},
	{"gone is a 404 alone", Failure{Status: 410, TargetMissing: true}, "anything else", Terminal, "Gone"},
	{"network missing", Failure{Status: 404, Codes: []string{"ResourceNotFound"}}, "anything else", Terminal, "ResourceNotFound"},
	{"429 with time", Failure{Status: 429, Codes: []string{"RetryableError", "RetryableErrorDueToAnotherOperation"}, RetryAt: retryAt}, "429", Retriable, "RetryableErrorDueToAnotherOperation"},
	{"429 without a body", Failure{Status: 429}, "429", Retriable, "Too Many Requests"},
	{"409", Failure{Status: 409, Codes: []string{"AnotherOperationInProgress"}}, "409", Retriable, "AnotherOperationInProgress"},
	{"412", Failure{Status: 412, Codes: []string{"PreconditionFailed", "PreconditionFailedEtagMismatch"}}, "412", Retriable, "PreconditionFailedEtagMismatch"},
	{"failed parent", Failure{Status: 400, Codes: []string{"ParentResourceIsInFailedState"}}, "load balancer failed", Retriable, CodeParentFailed},
	{"408", Failure{Status: 408}, "408, 500, 502, 503, 504", Terminal, "Request Timeout"},
	{"500", Failure{Status: 500}, "408, 500, 502, 503, 504", Terminal, "Internal Server Error"},
	{"502", Failure{Status: 502}, "408, 500, 502, 503, 504", Terminal, "Bad Gateway"},
	{"503", Failure{Status: 503, RetryAt: retryAt}, "408, 500, 502, 503, 504", Terminal, "Service Unavailable"},
	{"504", Failure{Status: 504}, "408, 500, 502, 503, 504", Terminal, "Gateway Timeout"},
	{"no server answered a read", Failure{NoResponse: true}, "no connection for a read", Terminal, CodeUnreachable},
	{"400", Failure{Status: 400, Codes: []string{"DuplicateResourceName"}}, "anything else", Terminal, "DuplicateResourceName"},
	{"403", Failure{Status: 403, Codes: []string{"AuthorizationFailed"}}, "anything else", Terminal, "AuthorizationFailed"},
	{"401", Failure{Status: 401, Codes: []string{"ExpiredAuthenticationToken"}}, "401", Terminal, "ExpiredAuthenticationToken"},
	{"501 is none of the SDK's", Failure{Status: 501}, "anything else", Terminal, "Not Implemented"},
	{"a retriable code at any other status", Failure{Status: 400, Codes: []string{"RetryableError"}}, "retriable code", Retriable, "RetryableError"},
	{"a retriable code of a server that the SDK has asked four times", Failure{Status: 503, Codes: []string{"RetryableError"}}, "408, 500, 502, 503, 504", Terminal, "RetryableError"},
	{"a retriable code of a poll that failed", Failure{ResultUnknown: true, Status: 400, Codes: []string{"RetryableError"}}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"the operation's load balancer is failed", Failure{OperationFailed: true, Codes: []string{CodeParentFailed}}, "operation ended, retriable code", Retriable, CodeParentFailed},
	{"nothing known", Failure{}, "anything else", Terminal, CodeUnclassified},
}

func TestClassify(t *testing.T) {
	for _, tt := range failureCases {
		t.Run(tt.name, func(t *testing.T) {
			if got := matchingRule(tt.answer); got != tt.rule {
				t.Errorf("decided by %q, want %q", got, tt.rule)
			}
			cause := fmt.Errorf("attempt: %w", io.ErrUnexpectedEOF)
			f := Classify(tt.answer, cause)
			if f.Reason == "" {
				t.Error("no reason")
			}
			if f.Class != tt.class || f.Code != tt.code || !f.RetryAt.Equal(tt.answer.RetryAt) {
				t.Errorf("got %s %q at %v, want %s %q at %v", f.Class, f.Code, f.RetryAt, tt.class, tt.code, tt.answer.RetryAt)
			}
			if !errors.Is(f, io.ErrUnexpectedEOF) {
				t.Error("the cause is not in the chain")
			}
			if got := FromError(fmt.Errorf("lane: %w", f)); got != f {
				t.Errorf("From found %v in a wrapped fault", got)
			}
		})
	}
}

// Every rule gives a reason and is used by at least one answer.
func TestEveryRuleDecidesSomething(t *testing.T) {
	for _, rule := range Rules {
		if !slices.ContainsFunc(failureCases, func(a failureCase) bool { return a.rule == rule.Name }) {
			t.Errorf("no test drives rule %q", rule.Name)
		}
		if rule.Description == "" || rule.Reason == "" {
			t.Errorf("rule %q gives no reason", rule.Name)
		}
	}
}

// A retriable code means the same in any place: as a response or as the end of an operation, alone
// or among the details.
func TestRetriableCodesInEachForm(t *testing.T) {
	codes := []string{
		"ReferencedResourceNotProvisioned", "RetryableError", "RetryableErrorDueToAnotherOperation", "AnotherOperationInProgress",
		"CanceledAndSupersededDueToAnotherOperation", "OperationPreempted", "Conflict", "TooManyRequests",
		"SubscriptionRequestsThrottled", "ResourceRequestsThrottled", "InternalExecutionError", CodeParentFailed,
	}
	forms := map[string]func(string) Failure{
		"400":                               func(c string) Failure { return Failure{Status: 400, Codes: []string{c}} },
		"400, nested":                       func(c string) Failure { return Failure{Status: 400, Codes: []string{"InvalidRequest", c}} },
		"403":                               func(c string) Failure { return Failure{Status: 403, Codes: []string{c}} },
		"409":                               func(c string) Failure { return Failure{Status: 409, Codes: []string{c}} },
		"429":                               func(c string) Failure { return Failure{Status: 429, Codes: []string{"RetryableError", c}} },
		"ended":                             func(c string) Failure { return Failure{OperationFailed: true, Status: 200, Codes: []string{c}} },
		"ended, nested":                     func(c string) Failure { return Failure{OperationFailed: true, Codes: []string{"Failed", c}} },
		"ended, nested before another code": func(c string) Failure { return Failure{OperationFailed: true, Codes: []string{"Failed", c, "Other"}} },
		"canceled, nested":                  func(c string) Failure { return Failure{OperationFailed: true, Codes: []string{"Canceled", c}} },
	}
	for form, answer := range forms {
		for _, code := range codes {
			if f := Classify(answer(code), nil); f.Class != Retriable {
				t.Errorf("%s %s: %s by %q", form, code, f.Class, matchingRule(answer(code)))
			}
		}
		for _, code := range []string{"InvalidParameter", "PrivateIPAddressInUse", "AuthorizationFailed", "InternalServerErrors"} {
			if f := Classify(answer(code), nil); f.Class != Terminal && form != "409" && form != "429" {
				t.Errorf("%s %s: %s by %q", form, code, f.Class, matchingRule(answer(code)))
			}
		}
	}
}

func matchingRule(a Failure) string {
	for _, rule := range Rules {
		if rule.Match(a) {
			return rule.Name
		}
	}
	return ""
}

func TestFromUnclassifiedError(t *testing.T) {
	if FromError(nil) != nil {
		t.Error("no error is no fault")
	}
	f := FromError(io.EOF)
	if f.Class != Terminal || f.Code != CodeUnclassified || !errors.Is(f, io.EOF) {
		t.Errorf("got %+v, want a terminal fault around it", f)
	}
}

func TestMessage(t *testing.T) {
	if got := Classify(Failure{Status: 409}, io.EOF).Error(); got != "EOF" {
		t.Errorf("got %q, want the cause's own words", got)
	}
	if got := Classify(Failure{Status: 409}, nil).Error(); got != "Conflict (Retriable)" {
		t.Errorf("got %q, want code and class", got)
	}
}

// Exhausted is true only after the SDK's retries.
func TestExhausted(t *testing.T) {
	for name, a := range map[string]Failure{
		"408": {Status: 408}, "500": {Status: 500}, "502": {Status: 502}, "503": {Status: 503}, "504": {Status: 504}, "no connection": {NoResponse: true},
	} {
		if f := Classify(a, nil); !f.HasExhaustedRetries() {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for name, a := range map[string]Failure{"400": {Status: 400}, "403": {Status: 403}, "404": {Status: 404}, "409": {Status: 409}, "412": {Status: 412}, "429": {Status: 429}, "501": {Status: 501}, "lost": {ResultUnknown: true}} {
		if f := Classify(a, nil); f.HasExhaustedRetries() {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Only a superseded write may have taken effect.
func TestSuperseded(t *testing.T) {
	for name, tt := range map[string]struct {
		answer Failure
		want   bool
	}{
		"superseded":           {Failure{OperationFailed: true, Codes: []string{"Canceled", "CanceledAndSupersededDueToAnotherOperation"}}, true},
		"canceled":             {Failure{OperationFailed: true, Codes: []string{"Canceled"}}, true},
		"canceled for a cause": {Failure{OperationFailed: true, Codes: []string{"Canceled", "InvalidParameter"}}, false},
		"failed":               {Failure{OperationFailed: true, Codes: []string{"RetryableError"}}, false},
		"a refusal":            {Failure{Status: 409, Codes: []string{"Canceled"}}, false},
		"a lost answer":        {Failure{ResultUnknown: true}, false},
	} {
		if got := Classify(tt.answer, nil).IsSuperseded(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (*Fault)(nil).IsSuperseded() {
		t.Error("no fault is none")
	}
}
