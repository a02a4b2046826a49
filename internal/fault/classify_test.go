// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

// answer is a failure and its expected classification.
type answer struct {
	name   string
	answer Answer
	rule   string
	class  Class
	code   string
}

var retryAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Each entry names the expected rule. Most also match a later one, because the order matters.
var answers = []answer{
	{"stopping says so before anything else", Answer{Stopping: true, GateClosed: true, OutcomeUnknown: true}, "lane stopping", Shutdown, CodeShutdown},
	{"closed gate", Answer{GateClosed: true, RetryAt: retryAt}, "gate closed", Retriable, CodeGateClosed},
	{"closed gate says so before anything else", Answer{GateClosed: true, Status: 404, TargetGone: true}, "gate closed", Retriable, CodeGateClosed},
	{"told to wait before", Answer{Resting: true, RetryAt: retryAt}, "not asked yet", Retriable, CodeResting},
	{"operation superseded", Answer{OperationEnded: true, Status: 200, Codes: []string{"Canceled", "CanceledAndSupersededDueToAnotherOperation"}}, "operation ended, retriable code", Retriable, "CanceledAndSupersededDueToAnotherOperation"},
	{"operation of the compute provider superseded", Answer{OperationEnded: true, Status: 200, Codes: []string{"OperationPreempted"}}, "operation ended, retriable code", Retriable, "OperationPreempted"},
	{"operation asks to come again", Answer{OperationEnded: true, Codes: []string{"RetryableError"}}, "operation ended, retriable code", Retriable, "RetryableError"},
	{"operation met another", Answer{OperationEnded: true, Codes: []string{"AnotherOperationInProgress"}}, "operation ended, retriable code", Retriable, "AnotherOperationInProgress"},
	{"operation throttled", Answer{OperationEnded: true, Codes: []string{"TooManyRequests"}}, "operation ended, retriable code", Retriable, "TooManyRequests"},
	{"operation met a newer etag", Answer{OperationEnded: true, Codes: []string{"PreconditionFailed"}}, "operation ended, retriable code", Retriable, "PreconditionFailed"},
	{"operation met a newer etag, in other words", Answer{OperationEnded: true, Codes: []string{"PreconditionFailedEtagMismatch"}}, "operation ended, retriable code", Retriable, "PreconditionFailedEtagMismatch"},
	{"operation met what only sounds like it", Answer{OperationEnded: true, Codes: []string{"FailedPrecondition"}}, "operation ended, other code", Terminal, "FailedPrecondition"},
	{"operation canceled without a word", Answer{OperationEnded: true, Status: 200, Codes: []string{"Canceled"}}, "operation ended, retriable code", Retriable, "Canceled"},
	{"operation canceled for a reason", Answer{OperationEnded: true, Codes: []string{"Canceled", "InvalidParameter"}}, "operation ended, other code", Terminal, "InvalidParameter"},
	{"operation failed", Answer{OperationEnded: true, Status: 200, Codes: []string{"InvalidParameter"}}, "operation ended, other code", Terminal, "InvalidParameter"},
	{"operation failed without a word", Answer{OperationEnded: true, Status: 200}, "operation ended, other code", Terminal, "OK"},
	{"operation throttled as a detail of a failure", Answer{OperationEnded: true, Codes: []string{"Failed", "TooManyRequests"}}, "operation ended, retriable code", Retriable, "TooManyRequests"},
	{"lost answer", Answer{OutcomeUnknown: true}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"a 404 to a poll says nothing of the pool", Answer{OutcomeUnknown: true, Status: 404, TargetGone: true}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"a 500 to a poll", Answer{OutcomeUnknown: true, Status: 500}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"pool gone", Answer{Status: 404, TargetGone: true, Codes: []string{"NotFound"}}, "pool or load balancer gone", Stale, "NotFound"},
	{"gone is a 404 alone", Answer{Status: 410, TargetGone: true}, "anything else", Terminal, "Gone"},
	{"network missing", Answer{Status: 404, Codes: []string{"ResourceNotFound"}}, "anything else", Terminal, "ResourceNotFound"},
	{"429 with time", Answer{Status: 429, Codes: []string{"RetryableError", "RetryableErrorDueToAnotherOperation"}, RetryAt: retryAt}, "429", Retriable, "RetryableErrorDueToAnotherOperation"},
	{"429 without a body", Answer{Status: 429}, "429", Retriable, "Too Many Requests"},
	{"409", Answer{Status: 409, Codes: []string{"AnotherOperationInProgress"}}, "409", Retriable, "AnotherOperationInProgress"},
	{"412", Answer{Status: 412, Codes: []string{"PreconditionFailed", "PreconditionFailedEtagMismatch"}}, "412", Retriable, "PreconditionFailedEtagMismatch"},
	{"failed parent", Answer{Status: 400, Codes: []string{"ParentResourceIsInFailedState"}}, "load balancer failed", Retriable, CodeParentFailed},
	{"408", Answer{Status: 408}, "408, 500, 502, 503, 504", Terminal, "Request Timeout"},
	{"500", Answer{Status: 500}, "408, 500, 502, 503, 504", Terminal, "Internal Server Error"},
	{"502", Answer{Status: 502}, "408, 500, 502, 503, 504", Terminal, "Bad Gateway"},
	{"503", Answer{Status: 503, RetryAt: retryAt}, "408, 500, 502, 503, 504", Terminal, "Service Unavailable"},
	{"504", Answer{Status: 504}, "408, 500, 502, 503, 504", Terminal, "Gateway Timeout"},
	{"no server answered a read", Answer{Unreachable: true}, "no connection for a read", Terminal, CodeUnreachable},
	{"400", Answer{Status: 400, Codes: []string{"DuplicateResourceName"}}, "anything else", Terminal, "DuplicateResourceName"},
	{"403", Answer{Status: 403, Codes: []string{"AuthorizationFailed"}}, "anything else", Terminal, "AuthorizationFailed"},
	{"501 is none of the SDK's", Answer{Status: 501}, "anything else", Terminal, "Not Implemented"},
	{"a retriable code at any other status", Answer{Status: 400, Codes: []string{"RetryableError"}}, "retriable code", Retriable, "RetryableError"},
	{"a retriable code of a server that the SDK has asked four times", Answer{Status: 503, Codes: []string{"RetryableError"}}, "408, 500, 502, 503, 504", Terminal, "RetryableError"},
	{"a retriable code of a poll that failed", Answer{OutcomeUnknown: true, Status: 400, Codes: []string{"RetryableError"}}, "outcome unknown", Retriable, CodeOutcomeUnknown},
	{"the operation's load balancer is failed", Answer{OperationEnded: true, Codes: []string{CodeParentFailed}}, "operation ended, retriable code", Retriable, CodeParentFailed},
	{"nothing known", Answer{}, "anything else", Terminal, CodeUnclassified},
}

func TestClassify(t *testing.T) {
	for _, tt := range answers {
		t.Run(tt.name, func(t *testing.T) {
			if got := deciding(tt.answer); got != tt.rule {
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
			if got := From(fmt.Errorf("lane: %w", f)); got != f {
				t.Errorf("From found %v in a wrapped fault", got)
			}
		})
	}
}

// Every rule gives a reason and is used by at least one answer.
func TestEveryRuleDecidesSomething(t *testing.T) {
	for _, rule := range Rules {
		if !slices.ContainsFunc(answers, func(a answer) bool { return a.rule == rule.Name }) {
			t.Errorf("no test drives rule %q", rule.Name)
		}
		if rule.Why == "" || rule.Reason == "" {
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
	forms := map[string]func(string) Answer{
		"400":                               func(c string) Answer { return Answer{Status: 400, Codes: []string{c}} },
		"400, nested":                       func(c string) Answer { return Answer{Status: 400, Codes: []string{"InvalidRequest", c}} },
		"403":                               func(c string) Answer { return Answer{Status: 403, Codes: []string{c}} },
		"409":                               func(c string) Answer { return Answer{Status: 409, Codes: []string{c}} },
		"429":                               func(c string) Answer { return Answer{Status: 429, Codes: []string{"RetryableError", c}} },
		"ended":                             func(c string) Answer { return Answer{OperationEnded: true, Status: 200, Codes: []string{c}} },
		"ended, nested":                     func(c string) Answer { return Answer{OperationEnded: true, Codes: []string{"Failed", c}} },
		"ended, nested before another code": func(c string) Answer { return Answer{OperationEnded: true, Codes: []string{"Failed", c, "Other"}} },
		"canceled, nested":                  func(c string) Answer { return Answer{OperationEnded: true, Codes: []string{"Canceled", c}} },
	}
	for form, answer := range forms {
		for _, code := range codes {
			if f := Classify(answer(code), nil); f.Class != Retriable {
				t.Errorf("%s %s: %s by %q", form, code, f.Class, deciding(answer(code)))
			}
		}
		for _, code := range []string{"InvalidParameter", "PrivateIPAddressInUse", "AuthorizationFailed", "InternalServerErrors"} {
			if f := Classify(answer(code), nil); f.Class != Terminal && form != "409" && form != "429" {
				t.Errorf("%s %s: %s by %q", form, code, f.Class, deciding(answer(code)))
			}
		}
	}
}

func deciding(a Answer) string {
	for _, rule := range Rules {
		if rule.Match(a) {
			return rule.Name
		}
	}
	return ""
}

func TestFromAnErrorThatNobodyClassified(t *testing.T) {
	if From(nil) != nil {
		t.Error("no error is no fault")
	}
	f := From(io.EOF)
	if f.Class != Terminal || f.Code != CodeUnclassified || !errors.Is(f, io.EOF) {
		t.Errorf("got %+v, want a terminal fault around it", f)
	}
}

func TestMessage(t *testing.T) {
	if got := Classify(Answer{Status: 409}, io.EOF).Error(); got != "EOF" {
		t.Errorf("got %q, want the cause's own words", got)
	}
	if got := Classify(Answer{Status: 409}, nil).Error(); got != "Conflict (Retriable)" {
		t.Errorf("got %q, want code and class", got)
	}
}

// Exhausted is true only after the SDK's retries.
func TestExhausted(t *testing.T) {
	for name, a := range map[string]Answer{
		"408": {Status: 408}, "500": {Status: 500}, "502": {Status: 502}, "503": {Status: 503}, "504": {Status: 504}, "no connection": {Unreachable: true},
	} {
		if f := Classify(a, nil); !f.Exhausted() {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for name, a := range map[string]Answer{"400": {Status: 400}, "403": {Status: 403}, "404": {Status: 404}, "409": {Status: 409}, "412": {Status: 412}, "429": {Status: 429}, "501": {Status: 501}, "lost": {OutcomeUnknown: true}} {
		if f := Classify(a, nil); f.Exhausted() {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Only a superseded write may have taken effect.
func TestSuperseded(t *testing.T) {
	for name, tt := range map[string]struct {
		answer Answer
		want   bool
	}{
		"superseded":           {Answer{OperationEnded: true, Codes: []string{"Canceled", "CanceledAndSupersededDueToAnotherOperation"}}, true},
		"canceled":             {Answer{OperationEnded: true, Codes: []string{"Canceled"}}, true},
		"canceled for a cause": {Answer{OperationEnded: true, Codes: []string{"Canceled", "InvalidParameter"}}, false},
		"failed":               {Answer{OperationEnded: true, Codes: []string{"RetryableError"}}, false},
		"a refusal":            {Answer{Status: 409, Codes: []string{"Canceled"}}, false},
		"a lost answer":        {Answer{OutcomeUnknown: true}, false},
	} {
		if got := Classify(tt.answer, nil).Superseded(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (*Fault)(nil).Superseded() {
		t.Error("no fault is none")
	}
}
