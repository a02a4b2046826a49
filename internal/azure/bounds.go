// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/spans"
	"weir.dev/weir/internal/azure/weight"
)

const mostPages = 1000

const mostErrorBytes = 1 << 20

// bounds limits the cost of a response. It runs between the observing policy, which sees rejected
// responses as truncated, and the SDK's decoding.
type bounds struct{}

// Do implements policy.Policy.
func (bounds) Do(req *policy.Request) (*http.Response, error) {
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
		if len(body) > mostErrorBytes {
			return resp, &weight.Unbearable{Why: fmt.Sprintf("the refusal is larger than %d MiB", mostErrorBytes>>20)}
		}
		return resp, nil
	}
	l := weight.Of(body)
	if c != nil && c.op == opList { // all pages are kept in memory
		c.pages.weight += l.Weight
		l.Weight = c.pages.weight
		if c.pages.bytes += len(body); c.pages.bytes > weight.MostBytes {
			return resp, weight.TooLarge()
		}
	}
	if err := l.Bearable(); err != nil {
		return resp, err
	}
	return resp, nil
}

type pages struct {
	path          string
	seen          map[string]bool
	bytes, weight int
}

func (p *pages) next(link *url.URL) error {
	path := strings.ToLower(link.EscapedPath())
	switch {
	case p.seen == nil:
		p.path, p.seen = path, map[string]bool{}
	case path != p.path:
		return &weight.Unbearable{Why: "the list's next page is said to be at another path, " + path}
	case p.seen[link.String()]:
		return &weight.Unbearable{Why: fmt.Sprintf("page %d of the list is said to be one that was read before", len(p.seen)+1)}
	case len(p.seen) >= mostPages:
		return &weight.Unbearable{Why: fmt.Sprintf("the list has more than %d pages", mostPages)}
	}
	p.seen[link.String()] = true
	return nil
}

// sparing limits the decompressed body to weight.MostBytes.
type sparing struct{ Transport }

// Do implements azcore's policy.Transporter.
func (s sparing) Do(req *http.Request) (*http.Response, error) {
	resp, err := s.Transport.Do(req)
	_, correlation := idsOf(resp)
	spans.Correlates(req.Context(), correlation) // the request's span starts after all policies
	if err == nil && resp.Body != nil {
		resp.Body = weight.Limit(resp.Body)
	}
	return resp, err
}
