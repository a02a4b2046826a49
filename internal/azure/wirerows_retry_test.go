// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/ratelimit"
)

func throttles() []wireRow {
	coded := func(code string) wireRow { return throttledRow("`"+code+"`", errorReply(429, code), code) }
	detailed := func(code string) wireRow {
		return throttledRow("`"+code+"`", errorReply(429, "RetryableError", code, "Come again."), code)
	}
	var rows []wireRow
	for _, r := range []wireRow{
		coded("SubscriptionRequestsThrottled"), coded("ResourceRequestsThrottled"), coded("TooManyRequests"), coded("OperationNotAllowed"),
		detailed("RetryableErrorDueToAnotherOperation"), detailed("ReferencedResourceNotProvisioned"), coded("RetryableError"),
		throttledRow("no body, status 429", reply{status: 429}, "Too Many Requests"),
		throttledRow("a proxy's page, status 429", newReply(429, proxyPage), "Too Many Requests"),
		throttledRow("429 broken off", reply{status: 429, body: errorBody("TooManyRequests", "x"), torn: errReset}, "Too Many Requests"),
	} {
		named := withRetryAfter20(r)
		named.name += ", Retry-After 20"
		rows = append(rows, r, named)
	}
	endless := wireRow{name: "`RetryableErrorDueToAnotherOperation` for ever, Retry-After 7", answer: slower(newReply(429, lockBody), "7"), after: new(7 * time.Second)}
	// The 87th poll would exceed the attempt's deadline.
	ever := expectedResult{requests: 86, class: armerror.Retriable, code: armerror.CodeOutcomeUnknown, paced: true}
	endless.poll, endless.self, endless.result = ever, ever, ever
	return append(rows, endless)
}

// retryAfters are the formats of Retry-After, with a status of the worker and one of the SDK.
func retryAfters() []wireRow {
	type way struct {
		name    string
		header  map[string]string
		after   *time.Duration // as Weir parses it
		until   time.Time
		paced   time.Duration // by the SDK; 0 for its default backoff
		tooLong bool          // the SDK does not retry
		tooLate bool          // exceeds the deadline of a wait
	}
	seconds := func(value string) map[string]string { return map[string]string{"Retry-After": value} }
	azureOpts := []way{
		{name: "2", header: seconds("2"), after: new(2 * time.Second), paced: 2 * time.Second},
		{name: "a date 40 s ahead", header: seconds("Sat, 01 Jan 2000 00:00:40 GMT"), until: epoch.Add(40 * time.Second)},
		{name: "a date past", header: seconds("Fri, 31 Dec 1999 00:00:00 GMT"), until: epoch.Add(-24 * time.Hour)},
		{name: "`retry-after-ms` 1500", header: map[string]string{"Retry-After-Ms": "1500"}, after: new(1500 * time.Millisecond), paced: 1500 * time.Millisecond},
		{name: "`x-ms-retry-after-ms` 2500", header: map[string]string{"X-Ms-Retry-After-Ms": "2500"}, after: new(2500 * time.Millisecond), paced: 2500 * time.Millisecond},
		{name: "all three, 1500 ms first", header: map[string]string{"Retry-After-Ms": "1500", "X-Ms-Retry-After-Ms": "2500", "Retry-After": "9"}, after: new(1500 * time.Millisecond), paced: 1500 * time.Millisecond},
		{name: "9, and milliseconds below zero", header: map[string]string{"Retry-After-Ms": "-5", "Retry-After": "9"}, after: new(9 * time.Second), paced: 9 * time.Second},
		{name: "0", header: seconds("0"), after: new(time.Duration(0))},
		{name: "below zero", header: seconds("-30")},
		{name: "no number and no date", header: seconds("soon")},
		{name: "120, beyond the SDK's longest delay", header: seconds("120"), after: new(2 * time.Minute), tooLong: true},
		{name: "126 years", header: seconds("4000000000"), after: new(ratelimit.MaxRetryAfter), tooLong: true, tooLate: true},
		{name: "317 years, which overflow the SDK", header: seconds("10000000000"), after: new(ratelimit.MaxRetryAfter), tooLong: true, tooLate: true},
	}
	var rows []wireRow
	for _, w := range azureOpts {
		lane := throttledRow("429: "+w.name, reply{status: 429, header: w.header}, "Too Many Requests")
		lane.after, lane.until, lane.paced = w.after, w.until, w.paced
		if w.tooLate {
			lane = lane.unknownAfter()
		}
		sdk := sdkRow("503: "+w.name, reply{status: 503, header: w.header}, "Service Unavailable")
		if w.tooLong {
			sdk = rejectedRow("503: "+w.name, sdk.answer, sdk.code)
		}
		sdk.after, sdk.until, sdk.paced = w.after, w.until, w.paced
		rows = append(rows, lane, sdk)
	}
	return rows
}

// epoch is the start time of a synctest bubble.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

// connectionErrors are connection errors as net/http reports them.
func connectionErrors() []wireRow {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	failures := []struct {
		name string
		err  error
	}{
		{"connection refused", dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))},
		{"no route", dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH))},
		{"dial timeout", dial(os.ErrDeadlineExceeded)},
		{"no such host", dial(&net.DNSError{Err: "no such host", Name: "management.azure.com", IsNotFound: true})},
		{"name server does not answer", dial(&net.DNSError{Err: "i/o timeout", Name: "management.azure.com", IsTimeout: true})},
		{"certificate of an unknown authority", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		{"no TLS at all", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}},
		{"TLS handshake timeout", errors.New("net/http: TLS handshake timeout")},
		{"reset before anything", errReset},
		{"closed before anything", io.EOF},
		{"closed within the headers", io.ErrUnexpectedEOF},
		{"timeout awaiting headers", context.DeadlineExceeded},
		{"broken pipe", &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}},
	}
	lost := func(name string, r reply) wireRow {
		return wireRow{name: name, answer: r, get: unreachable, put: unknown, poll: unfollowed, self: unfollowed, result: unfollowed}
	}
	var rows []wireRow
	for _, f := range failures {
		rows = append(rows, lost(f.name, reply{err: &url.Error{Op: "Get", URL: "https://management.azure.com/", Err: f.err}}))
	}
	return append(rows,
		lost("reset within the body, status 200", reply{status: 200, body: after, torn: errReset}),
		lost("closed within the body, status 200", reply{status: 200, body: after, torn: io.ErrUnexpectedEOF}),
		lost("timeout within the body, status 200", reply{status: 200, body: after, torn: os.ErrDeadlineExceeded}))
}

// operationResults are failed operations. They are reported by a poll with status 200.
func operationResults() []wireRow {
	type end struct {
		state, code, detail string
		class               armerror.Class
	}
	var rows []wireRow
	for _, e := range []end{
		{"Canceled", "Canceled", "CanceledAndSupersededDueToAnotherOperation", armerror.Retriable},
		{"Failed", "RetryableError", "", armerror.Retriable},
		{"Failed", "RetryableError", "RetryableErrorDueToAnotherOperation", armerror.Retriable},
		{"Failed", "RetryableError", "ReferencedResourceNotProvisioned", armerror.Retriable},
		{"Failed", "ReferencedResourceNotProvisioned", "", armerror.Retriable},
		{"Failed", "OperationFailed", "ReferencedResourceNotProvisioned", armerror.Retriable},
		{"Failed", "AnotherOperationInProgress", "", armerror.Retriable},
		{"Failed", "Conflict", "", armerror.Retriable},
		{"Failed", "SubscriptionRequestsThrottled", "", armerror.Retriable},
		{"Failed", "InternalExecutionError", "", armerror.Retriable},
		{"Failed", "TooManyRequests", "", armerror.Retriable},
		{"Failed", "PreconditionFailed", "PreconditionFailedEtagMismatch", armerror.Retriable},
		{"Failed", "InternalServerError", "", armerror.Terminal},
		{"Failed", "InvalidParameter", "", armerror.Terminal},
		{"Canceled", "Canceled", "", armerror.Retriable},
		{"Canceled", "Canceled", "InvalidParameter", armerror.Terminal},
		{"Failed", "", "", armerror.Terminal},
		{"Canceled", "", "", armerror.Retriable},
		{"Cancelled", "", "", armerror.Retriable},
	} {
		rows = append(rows, operationResult(e.state, e.code, e.detail, e.class))
	}
	return rows
}

func operationResult(state, code, detail string, class armerror.Class) wireRow {
	text := `{"status":"` + state + `"}`
	row := wireRow{name: state + ", no code", code: codeOperationFailed, ends: true}
	if class == armerror.Retriable {
		row.code = armerror.CodeCanceled
	}
	if code != "" {
		var details []string
		row.name, row.code = state+", `"+code+"`", code
		if detail != "" {
			details = []string{detail, "because"}
			row.name, row.code = row.name+" (`"+detail+"`)", detail
		}
		text = `{"status":"` + state + `",` + errorBody(code, "Operation ended.", details...)[1:]
	}
	row.answer = slower(newReply(200, text), "50") // only paces polls
	row.poll = expectedResult{requests: 1, class: class}
	if code == "" {
		row.self = expectedResult{requests: 1, class: class}
		row.answer.body = `{"status":"` + state + `",` + poolBody(state, "10.0.0.4")[1:]
	}
	return row
}
