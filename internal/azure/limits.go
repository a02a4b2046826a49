// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/weight"
)

const maxPages = 1000

const maxErrorBytes = 1 << 20

// responseLimitPolicy limits the cost of a response. It runs between the observing policy, which sees rejected
// responses as truncated, and the SDK's decoding.
type responseLimitPolicy struct{}

// Do implements policy.Policy.
func (responseLimitPolicy) Do(req *policy.Request) (*http.Response, error) {
	c := callOf(req.Raw().Context())
	resp, err := req.Next()
	if err != nil {
		return resp, err
	}
	body, err := runtime.Payload(resp)
	if err != nil {
		return resp, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		if len(body) > maxErrorBytes {
			return resp, &weight.LimitError{Reason: fmt.Sprintf("the refusal is larger than %d MiB", maxErrorBytes>>20)}
		}
		return resp, nil
	}
	l := weight.MeasureJSON(body)
	if c != nil && c.op == opList { // all pages are kept in memory
		c.pages.weight += l.Weight
		l.Weight = c.pages.weight
		if c.pages.bytes += len(body); c.pages.bytes > weight.MaxBytes {
			return resp, weight.NewSizeError()
		}
	}
	if err := l.CheckLimits(); err != nil {
		return resp, err
	}
	return resp, nil
}

type pages struct {
	path          string
	seen          map[string]bool
	bytes, weight int
}

func (p *pages) checkNext(link *url.URL) error {
	path := strings.ToLower(link.EscapedPath())
	switch {
	case p.seen == nil:
		p.path, p.seen = path, map[string]bool{}
	case path != p.path:
		return &weight.LimitError{Reason: "the list's next page has another path: " + path}
	case p.seen[link.String()]:
		return &weight.LimitError{Reason: fmt.Sprintf("page %d of the list links to a page that was read before", len(p.seen)+1)}
	case len(p.seen) >= maxPages:
		return &weight.LimitError{Reason: fmt.Sprintf("the list has more than %d pages", maxPages)}
	}
	p.seen[link.String()] = true
	return nil
}

// limitedTransport limits the decompressed body to weight.MaxBytes.
type limitedTransport struct{ Transport }

// Do implements azcore's policy.Transporter.
func (s limitedTransport) Do(req *http.Request) (*http.Response, error) {
	resp, err := s.Transport.Do(req)
	_, correlation := requestIDs(resp)
	setCorrelationID(req.Context(), correlation) // the request's span starts after all policies
	if err == nil && resp.Body != nil {
		resp.Body = weight.LimitBody(resp.Body)
	}
	return resp, err
}
