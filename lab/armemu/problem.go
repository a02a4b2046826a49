// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"net/http"
	"strconv"
	"time"
)

// Problem is an error response in ARM's format.
type Problem struct {
	Status  int
	Code    string
	Message string
	Details []Detail
	// Gateway marks errors of Resource Manager itself, which have no details.
	Gateway bool
	// OmitDetails omits the details, as the compute provider does.
	OmitDetails bool
	// RetryAfter is rounded up to seconds; 0 sends none.
	RetryAfter time.Duration
}

// Detail is one entry of an ARM error's details.
type Detail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (p *Problem) toBody() map[string]any {
	return map[string]any{"error": p.toFields()}
}

func (p *Problem) toFields() map[string]any {
	out := map[string]any{"code": p.Code, "message": p.Message}
	if !p.Gateway && !p.OmitDetails {
		out["details"] = append([]Detail{}, p.Details...)
	}
	return out
}

func (p *Problem) setHeaders(h http.Header) {
	if p.RetryAfter > 0 {
		h.Set("Retry-After", wholeSeconds(p.RetryAfter))
	}
	p.removeThrottleHeaders(h)
	if p.Gateway {
		h.Set("x-ms-failure-cause", "gateway")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer authorization_uri="https://login.microsoftonline.com/", error="invalid_token"`)
	}
}

func badRequest(code, message string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: code, Message: message, Gateway: true}
}

func notFound(code, message string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: code, Message: message, Gateway: true}
}

// wholeSeconds rounds up, so a client that waits is never early.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
