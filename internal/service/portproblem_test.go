// SPDX-License-Identifier: Apache-2.0

package service

import "testing"

func TestPortsOfProblems(t *testing.T) {
	for _, tt := range []struct {
		field  string
		port   PortRef
		reason string
	}{
		{ofPorts(Port{Port: 80}, fieldProtocol), PortRef{80, "SCTP"}, PortProtocol},
		{ofPorts(Port{Port: 65535}, "nodePort"), PortRef{Port: 65535}, PortNodePort},
		{ofPort(443, portProbePath), PortRef{Port: 443}, PortAnnotation},
		{IdleTimeout, PortRef{}, ""},
		{"spec.ports", PortRef{}, ""},
		{"", PortRef{}, ""},
	} {
		if port, message := (Problem{Field: tt.field, Value: "SCTP"}).OfPort(); port != tt.port || message != tt.reason {
			t.Errorf("%q: port %v, %q; want %v, %q", tt.field, port, message, tt.port, tt.reason)
		}
	}
}
