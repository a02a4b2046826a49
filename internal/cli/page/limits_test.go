// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"weir.dev/weir/internal/app"
)

// The front page lists limits that are near or reached, the fullest first. Without the leader it has all else.
func TestLimits(t *testing.T) {
	weir := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/limits" {
			_, _ = w.Write([]byte(`[{"resource":"low","name":"rules","used":1,"max":250},{"resource":"a<b","name":"rules","used":200,"max":250},{"resource":"nsg","name":"sources","used":4000,"max":4000}]`))
		}
	}))
	defer weir.Close()
	_, body := asks(t, Options{API: server(shop()...), Connection: app.Connection{Server: weir.URL}})("/")
	near, reached := strings.Index(body, "200 of 250"), strings.Index(body, "4000 of 4000")
	if near < 0 || reached < 0 || near < reached || !strings.Contains(body, "a&lt;b") || strings.Contains(body, ">low<") {
		t.Error(body)
	}
	weir.Close()
	status, body := asks(t, Options{API: server(shop()...), Connection: app.Connection{Server: weir.URL}})("/")
	if status != http.StatusOK || !strings.Contains(body, "The limits of Azure are unknown: no Weir responds") || !strings.Contains(body, `<h2 id="balancers">`) {
		t.Error(status, body)
	}
}
