// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import "testing"

// A Service may request an address in any spelling, and a name in any case.
func TestCanonicalAddress(t *testing.T) {
	for text, want := range map[string]string{
		"2001:DB8:0:0:0:0:0:1": "2001:db8::1", "2001:db8::1": "2001:db8::1", "198.18.0.1": "198.18.0.1", "My-IP": "my-ip",
	} {
		if got := canonicalAddress(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
