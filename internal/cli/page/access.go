// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/subtle"
	"net/http"
	"strings"

	"weir.dev/weir/internal/requestlog"
)

// securityHeaders restrict the browser to the styles and scripts of this page.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer", // the URL contains the token
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// requireToken requires the token as the first part of the path, which other users of this machine do not have. It
// rejects foreign Host headers, which prevents DNS rebinding.
func requireToken(token string, inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		if !requestlog.IsLocal(r) {
			http.Error(w, "use 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		given, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			http.Error(w, "use the whole address that weir page has printed", http.StatusNotFound)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "there is nothing to write here", http.StatusMethodNotAllowed)
			return
		}
		http.StripPrefix("/"+token, inside).ServeHTTP(w, r)
	})
}
