// SPDX-License-Identifier: Apache-2.0

package services

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/service"
)

// If a port has an error, the status lists all ports, as the API requires.
func TestTheStatusOfRefusedPorts(t *testing.T) {
	ports := []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}, {Port: 81, Protocol: corev1.ProtocolSCTP}}
	both := `[{"port":80,"protocol":"TCP","error":"weir.dev/NoNodePort"},{"port":81,"protocol":"SCTP"}]`
	for _, tt := range []struct {
		reason map[service.PortRef]string
		want   string
	}{
		{nil, "null"},
		{map[service.PortRef]string{{Port: 80}: "NoNodePort", {Port: 81, Protocol: "TCP"}: "InvalidAnnotation"}, both}, // the SCTP port is another port
		{map[service.PortRef]string{{Port: 7}: "NoNodePort"}, "null"},
		{map[service.PortRef]string{{Port: 81, Protocol: "SCTP"}: "UnsupportedProtocol"}, `[{"port":80,"protocol":"TCP"},{"port":81,"protocol":"SCTP","error":"weir.dev/UnsupportedProtocol"}]`},
	} {
		got, err := json.Marshal(portStatuses(ports, tt.reason))
		if err != nil || string(got) != tt.want {
			t.Errorf("%v: %s, want %s", tt.reason, got, tt.want)
		}
	}
}
