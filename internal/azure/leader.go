// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"weir.dev/weir/internal/leader"
)

// leaderPolicy blocks writes without leadership, including SDK retries and the rest of a body that waited
// for a connection.
type leaderPolicy struct{ fence *leader.Fence }

// Do implements policy.Policy.
func (l leaderPolicy) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if raw.Method == http.MethodGet || l.fence == nil {
		return req.Next()
	}
	if err := l.fence.CheckWrite(); err != nil {
		return nil, &nonRetriableError{err}
	}
	if raw.Body == nil || raw.Body == http.NoBody {
		return req.Next()
	}
	guarded := req.Clone(raw.Context())
	guarded.Raw().Body = l.fence.WrapBody(raw.Body)
	return guarded.Next()
}
