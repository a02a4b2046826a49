// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net"
	"net/http"
	"net/netip"

	"weir.dev/weir/internal/calls"
)

// Handler answers what people ask. It has no authentication, so it is for an address that this
// machine alone reaches: in a cluster those may who have the right to pods/portforward. A page of
// somebody else's in a browser is not answered: its name for this machine is another one.
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

// Local reports whether a request knows this machine by a name that nobody else can give it.
func Local(r *http.Request) bool { return Loopback(HostOf(r.Host)) }

// HostOf is a Host header without its port.
func HostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return header
}

// Loopback reports whether nobody but this machine reaches a host.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
