// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// validateMatch returns an error that starts with the field's name.
func (m *faultMatch) validateMatch() error {
	methods := []string{"", http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPost, http.MethodPatch}
	switch {
	case !slices.Contains(methods, m.Method):
		return fmt.Errorf("method: %q is not matched by any request: use one of %s", m.Method, strings.Join(methods[1:], ", "))
	case m.Kind != "" && !slices.Contains(Kinds(), m.Kind):
		return fmt.Errorf("kind: %q is unknown: use one of %v", m.Kind, Kinds())
	case m.Nth < 0:
		return fmt.Errorf("nth: %d: use 1 or more", m.Nth)
	case m.Every < 0:
		return fmt.Errorf("every: %d: use 1 or more", m.Every)
	case m.Nth > 0 && m.Every > 0:
		return fmt.Errorf("nth: %d and every: %d exclude each other: keep one", m.Nth, m.Every)
	case m.Probability != nil && !(*m.Probability > 0 && *m.Probability <= 1):
		return fmt.Errorf("probability: %v: use a number above 0 and at most 1", *m.Probability)
	case m.Until > 0 && m.Until <= m.After:
		return fmt.Errorf("until: must be later than after")
	case m.MaxMatches < 0:
		return fmt.Errorf("maxMatches: %d: use 1 or more", m.MaxMatches)
	}
	return nil
}

func (a *faultAction) validateAction() error {
	answers := a.Status != 0 || a.Drop
	switch {
	case !answers && a.Delay == 0 && a.TruncateBody == nil && !a.BumpEtag && a.Operation == nil && a.Polls == nil && len(a.Headers) == 0:
		return fmt.Errorf("status: nothing is asked for: set at least one of delay, status, headers, drop, truncateBody, bumpEtag, operation, polls")
	case a.Status != 0 && (a.Status < 200 || a.Status > 599):
		return fmt.Errorf("status: %d: use 200 to 599", a.Status)
	case a.Status == 0 && (a.Code != "" || a.Message != "" || len(a.Details) > 0 || a.Body != nil):
		return fmt.Errorf("status: missing: code, message, details and body need one")
	case a.Body != nil && (a.Code != "" || a.Message != "" || len(a.Details) > 0):
		return fmt.Errorf("body: excludes code, message and details: keep either")
	case a.Drop && (a.Status != 0 || a.TruncateBody != nil):
		return fmt.Errorf("drop: excludes status and truncateBody: a dropped connection carries no answer")
	case a.TruncateBody != nil && *a.TruncateBody < 0:
		return fmt.Errorf("truncateBody: %d: use the number of bytes to send, 0 or more", *a.TruncateBody)
	case a.Applied && !answers && (a.Operation == nil || a.Operation.Fail == nil):
		return fmt.Errorf("applied: needs status, drop or operation.fail: it says that the write happened all the same")
	case answers && !a.Applied && (a.Operation != nil || a.Polls != nil):
		return fmt.Errorf("operation: no operation starts when the request is refused: add applied: true, or drop status and drop")
	}
	for name, value := range a.Headers {
		if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("headers: %q: %q is no header", name, value)
		}
	}
	return a.validateOperation()
}

func (a *faultAction) validateOperation() error {
	if o := a.Operation; o != nil {
		switch {
		case o.Stuck == (o.Fail != nil):
			return fmt.Errorf("operation: set exactly one of stuck and fail")
		case o.Fail != nil && o.Fail.Code == "":
			return fmt.Errorf("operation.fail.code: missing: an operation fails with a code, e.g. InternalServerError")
		}
	}
	if p := a.Polls; p != nil {
		switch {
		case p.Status < 400 || p.Status > 599:
			return fmt.Errorf("polls.status: %d: use 400 to 599", p.Status)
		case p.Times < 1:
			return fmt.Errorf("polls.times: %d: use 1 or more", p.Times)
		}
	}
	return nil
}
