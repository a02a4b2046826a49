// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const canaryRedact = "CANARY-secret"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"Authorization: Bearer abc.def-ghi":   "Authorization: Bearer REDACTED",
		"bearer\tabcdef":                      "bearer\tREDACTED",
		"got eyJhbGciOiJSUzI1NiJ9.eyJ4Ijox.s": "got REDACTED",
		"https://u:p@h/x?sig=1#f":             "https://h/x#f",
		"see https://h/x?api-version=1&t=2":   "see https://h/x?api-version=1",
		"see https://%zz/x?t=2":               "see https://%zz/x",
		"Bearer \"abcdef\"":                   "Bearer \"REDACTED\"",
		"bearer%20abcdef":                     "bearer%20REDACTED",
		"SharedAccessKey=abc;x":               "SharedAccessKey=REDACTED",
		"see //h/p?sig=abc":                   "see //h/p",
		"AccountKey=abc==;x":                  "AccountKey=REDACTED",
		"sig=abc&se=1":                        "sig=REDACTED&se=1",
		"a%3Fsig%3Dabc":                       "a%3Fsig%3DREDACTED",
		`invalid URL "/subscriptions/x/operations/y?api-version=1&t=2&s=abc"`: `invalid URL "/subscriptions/x/operations/y?api-version=1"`,
		`https:\/\/h\/?sig=abc`: `https:\/\/h\/`,
		"the bearer of news":    "the bearer of news",
		"plain":                 "plain",
	} {
		if got := redactText(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// The sent request retains its token; only the copy is redacted.
func TestRequestCopies(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://h/x", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+canaryRedact)
	req.Header.Set("X-Ms-Authorization-Auxiliary", "Bearer "+canaryRedact)
	if safe := redactRequest(req); strings.Contains(fmt.Sprintf("%+v", safe), canaryRedact) || safe.Body != nil {
		t.Errorf("copy is not safe: %+v", safe)
	}
	if req.Header.Get("Authorization") != "Bearer "+canaryRedact || req.Body == nil {
		t.Error("the request itself was changed")
	}
}
