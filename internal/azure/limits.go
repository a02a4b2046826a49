// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
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
			return resp, &LimitError{Reason: fmt.Sprintf("the refusal is larger than %d MiB", maxErrorBytes>>20)}
		}
		return resp, nil
	}
	l := measureJSON(body)
	if c != nil && c.op == opList { // all pages are kept in memory
		c.pages.weight += l.Weight
		l.Weight = c.pages.weight
		if c.pages.bytes += len(body); c.pages.bytes > maxResponseBytes {
			return resp, newSizeError()
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
		return &LimitError{Reason: "the list's next page has another path: " + path}
	case p.seen[link.String()]:
		return &LimitError{Reason: fmt.Sprintf("page %d of the list links to a page that was read before", len(p.seen)+1)}
	case len(p.seen) >= maxPages:
		return &LimitError{Reason: fmt.Sprintf("the list has more than %d pages", maxPages)}
	}
	p.seen[link.String()] = true
	return nil
}

// limitedTransport limits the decompressed body to maxResponseBytes.
type limitedTransport struct{ Transport }

// Do implements azcore's policy.Transporter.
func (l limitedTransport) Do(req *http.Request) (*http.Response, error) {
	resp, err := l.Transport.Do(req)
	_, correlation := requestIDs(resp)
	setCorrelationID(req.Context(), correlation) // the request's span starts after all policies
	if err == nil && resp.Body != nil {
		resp.Body = limitBody(resp.Body)
	}
	return resp, err
}

// limitBody returns a body that fails after maxResponseBytes.
func limitBody(body io.ReadCloser) io.ReadCloser {
	return &limitedBody{ReadCloser: body, remaining: maxResponseBytes}
}

// newSizeError returns the error for a response larger than maxResponseBytes.
func newSizeError() error {
	return &LimitError{Reason: fmt.Sprintf("the response is larger than %d MiB", maxResponseBytes>>20)}
}

// limitedBody fails where io.LimitReader would return EOF.
type limitedBody struct {
	io.ReadCloser
	remaining int
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.remaining < 0 {
		return 0, newSizeError()
	}
	if len(p) > b.remaining+1 {
		p = p[:b.remaining+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.remaining -= n; b.remaining < 0 {
		return n, newSizeError()
	}
	return n, err
}
