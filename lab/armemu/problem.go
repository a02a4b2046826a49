// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Problem is an error answer in ARM's form.
type Problem struct {
	Status  int
	Code    string
	Message string
	Details []Detail
	// Gateway says that Resource Manager itself answers, and no provider behind it: its
	// errors have no details, and those about what is missing no throttle headers.
	Gateway bool
	// Bare leaves the details off, as the compute provider does.
	Bare bool
	// RetryAfter becomes the header in whole seconds, rounded up; 0 sends none.
	RetryAfter time.Duration
}

// Detail is one entry of an ARM error's details.
type Detail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (p *Problem) body() map[string]any {
	return map[string]any{"error": p.fields()}
}

func (p *Problem) fields() map[string]any {
	out := map[string]any{"code": p.Code, "message": p.Message}
	if !p.Gateway && !p.Bare {
		out["details"] = append([]Detail{}, p.Details...)
	}
	return out
}

// header adds the headers that belong to the problem.
func (p *Problem) header(h http.Header) {
	if p.RetryAfter > 0 {
		h.Set("Retry-After", wholeSeconds(p.RetryAfter))
	}
	p.quietLookups(h)
	if p.Gateway {
		h.Set("x-ms-failure-cause", "gateway")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer authorization_uri="https://login.microsoftonline.com/", error="invalid_token"`)
	}
}

func bad(code, message string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: code, Message: message, Gateway: true}
}

func notFound(code, message string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: code, Message: message, Gateway: true}
}

// wholeSeconds rounds up, because a client that comes early is refused again.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// encode writes JSON as a server would: no HTML escapes, keys in order.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// All that is encoded here came from a JSON decoder or from this
		// package's own structs.
		panic("armemu: cannot encode an answer: " + err.Error())
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}
