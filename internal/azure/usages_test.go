// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/skumigration/phase"
)

// All pages of the same path are read; a missing permission or another response is an error.
func TestUsages(t *testing.T) {
	const path = "/subscriptions/s1/providers/Microsoft.Network/locations/westeurope/usages"
	single := func(name, next string) string {
		return `{"value":[{"unit":"Count","currentValue":3,"limit":10,"name":{"value":"` + name + `","localizedValue":"x"}}],"nextLink":"` + next + `"}`
	}
	for _, tt := range []struct {
		about, location string
		answers         func(page int, host string) (int, string)
		want            []string
		wantText        string
	}{
		{"two pages", "West Europe", func(page int, host string) (int, string) {
			return 200, []string{single("A", host+path+"?api-version=2025-05-01&$skiptoken=1"), single("B", "")}[page]
		}, []string{"A", "B"}, ""},
		{"without end", "westeurope", func(_ int, host string) (int, string) { return 200, single("A", host+path) }, nil, "more than 20 pages"},
		{"a page of another server", "westeurope", func(int, string) (int, string) { return 200, single("A", "https://example.com"+path) }, nil, "another address"},
		{"a page of something else", "westeurope", func(_ int, host string) (int, string) { return 200, single("A", host+"/subscriptions/s2") }, nil, "another address"},
		{"no right", "westeurope", func(int, string) (int, string) {
			return 403, `{"error":{"code":"AuthorizationFailed","message":"does not have authorization"}}`
		}, nil, "403 AuthorizationFailed"},
		{"something else", "westeurope", func(int, string) (int, string) { return 200, `{}` }, nil, "no list of usages"},
		{"no region", "../x", nil, nil, `"../x" is no region`},
	} {
		page := 0
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path || r.URL.Query().Get("api-version") == "" && page == 0 {
				t.Errorf("%s: asked for is %s", tt.about, r.URL)
			}
			status, text := tt.answers(page, server.URL)
			page++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}))
		defer server.Close()
		endpoint, credential, err := azure.LocalEndpoint(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: server.Client(), Retry: azure.Retry{Delay: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		usages, err := azure.ListUsages(t.Context(), client, "s1", tt.location)
		var names []string
		for _, u := range usages {
			names = append(names, u.Name)
			if u != (phase.Usage{Subscription: "s1", Name: u.Name, Used: 3, Limit: 10}) {
				t.Errorf("%s: %+v", tt.about, u)
			}
		}
		if !slices.Equal(names, tt.want) || (err != nil) != (tt.wantText != "") || err != nil && !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%s: %q, %v", tt.about, names, err)
		}
	}
}
