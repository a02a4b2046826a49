// SPDX-License-Identifier: Apache-2.0

package service

import "testing"

func TestWhichPortAProblemIsOf(t *testing.T) {
	for _, tt := range []struct {
		field string
		port  int32
		why   string
	}{
		{ofPorts(Port{Port: 80}, fieldProtocol), 80, PortProtocol},
		{ofPorts(Port{Port: 65535}, "nodePort"), 65535, PortNodePort},
		{ofPort(443, portProbePath), 443, PortAnnotation},
		{IdleTimeout, 0, ""},
		{"spec.ports", 0, ""},
		{"", 0, ""},
	} {
		if port, why := (Problem{Field: tt.field}).OfPort(); port != tt.port || why != tt.why {
			t.Errorf("%q: port %d, %q; want %d, %q", tt.field, port, why, tt.port, tt.why)
		}
	}
}
