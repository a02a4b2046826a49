// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net"
	"testing"
)

// FreeAddresses returns addresses of this machine at which nobody listens, no two the same:
// each is held until all are found.
func FreeAddresses(t testing.TB, n int) []string {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		all[i] = listener.Addr().String()
	}
	return all
}
