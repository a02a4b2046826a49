// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/lb"
)

func etag(value string) string { return cmp.Or(value, lb.NoEtag) }

// EtagIn returns the etag in a response body, or "". The body can be read again.
func EtagIn(resp *http.Response) string {
	var resource struct {
		Etag string `json:"etag"`
	}
	body, err := runtime.Payload(resp)
	if err != nil || json.Unmarshal(body, &resource) != nil {
		return ""
	}
	return resource.Etag
}

// NullList reports whether a list response has the value null. A missing value is not a list.
func NullList(answer *http.Response) bool {
	if answer == nil {
		return false
	}
	var page map[string]json.RawMessage
	body, err := runtime.Payload(answer)
	return err == nil && json.Unmarshal(body, &page) == nil && string(page["value"]) == "null"
}
