// SPDX-License-Identifier: Apache-2.0

package requestlog

import (
	"net"
	"net/http"
	"net/netip"
)

// NewHandler serves diagnostics without authentication, so it must listen on loopback. In a cluster, access
// requires pods/portforward. It rejects foreign Host headers, which prevents DNS rebinding from a browser.
func NewHandler(log *Log) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+CallsPath, serveCalls(log))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsLocal(r) {
			http.Error(w, "use 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// IsLocal reports whether the Host header names loopback.
func IsLocal(r *http.Request) bool { return IsLoopback(HostWithoutPort(r.Host)) }

// HostWithoutPort returns a Host header without its port.
func HostWithoutPort(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return header
}

// IsLoopback reports whether a host is localhost or a loopback IP.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
