// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/lb"
)

func etagOrAny(value string) string { return cmp.Or(value, lb.NoEtag) }

// ResponseEtag returns the etag in a response body, or "". The body can be read again.
func ResponseEtag(resp *http.Response) string {
	var resource struct {
		Etag string `json:"etag"`
	}
	body, err := runtime.Payload(resp)
	if err != nil || json.Unmarshal(body, &resource) != nil {
		return ""
	}
	return resource.Etag
}

// IsNullList reports whether a list response has the value null. A missing value is not a list.
func IsNullList(resp *http.Response) bool {
	if resp == nil {
		return false
	}
	var page map[string]json.RawMessage
	body, err := runtime.Payload(resp)
	return err == nil && json.Unmarshal(body, &page) == nil && string(page["value"]) == "null"
}
