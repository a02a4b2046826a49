// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net"
	"net/http"
	"net/netip"

	"weir.dev/weir/internal/calls"
)

// Handler serves diagnostics without authentication, so it must listen on loopback. In a cluster, access
// requires pods/portforward. It rejects foreign Host headers, which prevents DNS rebinding from a browser.
func Handler(log *calls.Log) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PathOfCalls, serveCalls(log))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Local(r) {
			http.Error(w, "ask for 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// Local reports whether the Host header names loopback.
func Local(r *http.Request) bool { return Loopback(HostOf(r.Host)) }

// HostOf returns a Host header without its port.
func HostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return header
}

// Loopback reports whether a host is localhost or a loopback IP.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
