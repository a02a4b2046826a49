// SPDX-License-Identifier: Apache-2.0

package humanize

import (
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
)

const (
	one   = "e4fa9a7e-3d4c-4c0b-9a06-1c7b2f8f1d11"
	other = "0b7c1a52-77aa-4b3e-8d6e-5a9d0c3e9f22"
)

// Known or possible messages of Azure. Request IDs make no difference; IDs of identities and
// subscriptions do.
func TestIDsOfRequestsAreNoNews(t *testing.T) {
	for _, tt := range []struct {
		text string
		same bool
	}{
		{"409 Conflict: busy (request id #)", true},
		{"409 Conflict: busy (request id #); another follows within a minute", true},
		{"An error occurred. Correlation Id: '#'.", true},
		{"Internal error, CorrelationRequestId: #", true},
		{"x-ms-request-id=#", true},
		{"Please contact support; tracking id is '#'", true},
		{"Trace ID: # Correlation ID: # Timestamp: 2026-11-23 10:11:12Z", true},
		{"Operation PutLoadBalancerOperation (#) was canceled and superseded by operation PutLoadBalancerOperation (#).", true},
		{"use uri: https://management.azure.com/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/#?api-version=1", true},
		{"use uri: https://management.azure.com/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/#?api-version=1&t=1&s=#.", true},
		{`"activityId":"#"`, true},
		{`Etag provided in if-match header W/"#" does not match etag W/"#" of resource /subscriptions/s`, true},
		{"The request timed out. Diagnostic information: timestamp '20261123T101112Z', tracking id '#'.", true},
		{"Put \"https://management.azure.com/a\": read tcp 10.0.0.4:10111->20.1.2.3:443: read: connection reset by peer", true},
		{"lookup management.azure.com on [fd00::a]:53: read udp [fd00::1]:10111->[fd00::a]:53: i/o timeout", true},
		{"dial tcp 10.0.0.4:10111: connect: connection refused", false},
		{"the client '#' with object id '#' does not have permission", false},
		{"read /subscriptions/#/resourceGroups/rg: 404", false},
		{"#", false},
	} {
		a, b := strings.ReplaceAll(tt.text, "#", one), strings.ReplaceAll(tt.text, "#", other)
		b = strings.NewReplacer("10:11:12Z", "10:12:44Z", "101112Z", "101244Z", ":10111", ":10112").Replace(b)
		if EqualMessages(a, b) != tt.same || !EqualMessages(a, a) {
			t.Errorf("%s\n%s\nsame: %v, want %v", a, b, EqualMessages(a, b), tt.same)
		}
		if EqualMessages(a, b+" more") {
			t.Errorf("%s: other words are taken for the same", a)
		}
	}
	if !EqualMessages("busy", "busy (request id 77aa)") {
		t.Error("that Azure named the request now is news")
	}
	if !EqualMessages("correlation id e4fa9a7e-3…", "correlation id 0b7c1a52-7…") {
		t.Error("an id that is cut is news")
	}
}

// A requested delay makes no difference.
func TestDelaysAreNoNews(t *testing.T) {
	for _, text := range []string{
		"The call can be retried in # seconds.",
		"Please try again after '#' seconds after additional tokens are available.",
		"Retry after # seconds.",
	} {
		if a, b := strings.ReplaceAll(text, "#", "11"), strings.ReplaceAll(text, "#", "7"); WithoutRetryDetails(a) != WithoutRetryDetails(b) {
			t.Errorf("%q is news", a)
		}
	}
}

// Without its details a message has no empty quotes, and the time of a retry is not part of it.
func TestMessagesWithoutDetails(t *testing.T) {
	for text, want := range map[string]string{
		`Etag in header W/"` + one + `" does not match etag W/"` + other + `" of pool web`: "Etag in header does not match etag of pool web",
		`if-match W/\"` + one + `\", and so on`:                                            "if-match, and so on",
		"W/\"" + one[:9] + "…":                                                             "…",
		"failed: busy; Weir retries the admin states at 2026-11-21T03:00:00Z, because":     "failed: busy; Weir retries the admin states, because",
	} {
		if got := WithoutRetryDetails(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The request ID is at the end, once, for a text of any length.
func TestATextEndsWithItsRequest(t *testing.T) {
	const end = " (request id r1)"
	for _, text := range []string{"busy.", strings.Repeat("long ", 2000)} {
		f := &armerror.Fault{Code: "Conflict", RequestID: "r1", Err: errors.New(text)}
		wrapped := &armerror.Fault{Code: "Contested", Err: f}
		for about, got := range map[string]string{
			"of a fault": FormatFault(f, 300), "of a wrapped one": FormatFault(wrapped, 300),
			"of an error": FormatError(f, f.RetryAt), "added": AppendRequestID(text, wrapped, 300),
		} {
			if !strings.HasSuffix(got, end) || strings.Count(got, end) != 1 || strings.Contains(got, ". (") || len(got) > MaxMessage {
				t.Errorf("%s: %q", about, got)
			}
			if about != "of an error" && len(got) > 300 {
				t.Errorf("%s: %d bytes", about, len(got))
			}
		}
	}
	output := &armerror.Fault{Code: "Conflict", RequestID: one, Err: errors.New("busy: " + one)}
	if got := FormatFault(output, 300); strings.Count(got, one) != 1 {
		t.Errorf("said twice: %s", got)
	}
	if got := FormatFault(&armerror.Fault{Code: "Conflict", Err: errors.New("Conflict")}, 300); got != "Conflict" {
		t.Error(got)
	}
}
