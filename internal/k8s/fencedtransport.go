// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/leader"
)

// WithFence returns a client configuration that sends writes only while this process leads: a former
// leader's cache is outdated.
func WithFence(cfg *rest.Config, fence *leader.Fence) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	if fence != nil {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fenceTransport{next, fence} })
	}
	return cfg
}

type fenceTransport struct {
	next  http.RoundTripper
	fence *leader.Fence
}

func (f *fenceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !canModify(req) {
		return f.next.RoundTrip(req)
	}
	if err := f.fence.CheckWrite(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // required of a RoundTripper
		}
		return nil, err
	}
	if req.Body != nil && req.Body != http.NoBody {
		req = req.Clone(req.Context())
		req.Body = f.fence.WrapBody(req.Body)
		if getBody := req.GetBody; getBody != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				body, err := getBody()
				return f.fence.WrapBody(body), err
			}
		}
	}
	return f.next.RoundTrip(req)
}

func (f *fenceTransport) WrappedRoundTripper() http.RoundTripper { return f.next }

// reviewPaths are API groups in which POST requests change nothing.
var reviewPaths = []string{"/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"}

func canModify(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		for _, group := range reviewPaths {
			if strings.Contains(req.URL.Path, group) {
				return false
			}
		}
	}
	return true
}
