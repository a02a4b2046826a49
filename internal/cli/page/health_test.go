// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"weir.dev/weir/internal/app"
)

// The page reads Azure's health only if a link requests it; a failure is one line.
func TestHealthOnThePage(t *testing.T) {
	reads, fails := 0, false
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if reads++; fails {
			http.Error(w, "no <right>", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte(`[{"rule":"r","probe":"p","members":[{"ip":"10.0.0.1","up":false,"reason":"Down_Probe_HttpStatusCodeError"}]}]`))
	}))
	defer leader.Close()
	get := asks(t, Options{API: server(shop()...), Connection: app.Connection{Server: leader.URL}})
	status, body := get("/service/shop/web")
	if status != http.StatusOK || reads != 0 || !strings.Contains(body, `/service/shop/web?health=true"`) || strings.Contains(body, "Azure's probe</th>") {
		t.Errorf("%d reads: %d\n%s", reads, status, body)
	}
	status, body = get("/service/shop/web?health=true")
	if status != http.StatusOK || reads == 0 || !strings.Contains(body, "Down_Probe_HttpStatusCodeError") {
		t.Errorf("%d reads: %d\n%s", reads, status, body)
	}
	fails = true
	get = asks(t, Options{API: server(shop()...), Connection: app.Connection{Server: leader.URL}})
	if status, body = get("/service/shop/web?health=true"); status != http.StatusOK || !strings.Contains(body, "no &lt;right&gt;") || !strings.Contains(body, "192.0.2.1") {
		t.Errorf("%d\n%s", status, body)
	}
}
