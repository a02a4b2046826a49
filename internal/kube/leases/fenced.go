// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/lead"
)

// Fenced returns the configuration of clients whose requests change something only while
// this process leads. Whatever else is refused to a process that leads no more, its memory
// is older than the cluster, so it must not get as far as the API server.
func Fenced(cfg *rest.Config, fence *lead.Fence) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	if fence != nil {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fenced{next, fence} })
	}
	return cfg
}

// fenced is a transport over which nothing is changed by who does not lead.
type fenced struct {
	next  http.RoundTripper
	fence *lead.Fence
}

// RoundTrip implements http.RoundTripper.
func (f *fenced) RoundTrip(req *http.Request) (*http.Response, error) {
	if !changes(req) {
		return f.next.RoundTrip(req)
	}
	if err := f.fence.MayWrite(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as a transport has to; nothing was read
		}
		return nil, err
	}
	if req.Body != nil && req.Body != http.NoBody {
		req = req.Clone(req.Context())
		req.Body = f.fence.Body(req.Body)
		if again := req.GetBody; again != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				body, err := again()
				return f.fence.Body(body), err
			}
		}
	}
	return f.next.RoundTrip(req)
}

// WrappedRoundTripper lets client-go find the transport below.
func (f *fenced) WrappedRoundTripper() http.RoundTripper { return f.next }

// reviews are the groups of the questions that are asked by POST. They change nothing, and
// who serves metrics asks them without leading.
var reviews = []string{"/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"}

// changes reports whether a request changes something.
func changes(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		for _, group := range reviews {
			if strings.Contains(req.URL.Path, group) {
				return false
			}
		}
	}
	return true
}
