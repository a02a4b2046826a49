// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestPermissions(t *testing.T) {
	for _, tt := range []struct {
		role     *Role
		status   int
		wantText string
	}{
		{nil, http.StatusOK, `"actions":["*"]`},
		{&Role{Actions: []string{"a/read", "Microsoft.Authorization/*"}, NotActions: []string{"b/write"}}, http.StatusOK, `{"actions":["a/read","Microsoft.Authorization/*"],"notActions":["b/write"]}`},
		{&Role{Actions: []string{"a/read"}}, http.StatusForbidden, "AuthorizationFailed"},
	} {
		e := New(Options{Role: tt.role})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://management.azure.com/subscriptions/s/resourceGroups/rg/providers/Microsoft.Authorization/permissions?api-version=2022-04-01", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		resp, err := e.Transport().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err != nil || resp.StatusCode != tt.status || !strings.Contains(string(text), tt.wantText) {
			t.Errorf("%+v: %d, %v: %s", tt.role, resp.StatusCode, err, text)
		}
		if calls := e.Calls(); len(calls) != 1 || len(calls[0].Actions) != 1 || calls[0].Actions[0] != readPermissions {
			t.Errorf("%+v: %+v", tt.role, calls)
		}
	}
}
