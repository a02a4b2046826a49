// SPDX-License-Identifier: Apache-2.0

package services

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A status names all ports where one is refused, as the API asks for, and none else.
func TestTheStatusOfRefusedPorts(t *testing.T) {
	ports := []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}, {Port: 81, Protocol: corev1.ProtocolSCTP}}
	for _, tt := range []struct {
		why  map[int32]string
		want string
	}{
		{nil, "null"},
		{map[int32]string{7: "NoNodePort"}, "null"},
		{map[int32]string{81: "UnsupportedProtocol"}, `[{"port":80,"protocol":"TCP"},{"port":81,"protocol":"SCTP","error":"weir.dev/UnsupportedProtocol"}]`},
	} {
		got, err := json.Marshal(refused(ports, tt.why))
		if err != nil || string(got) != tt.want {
			t.Errorf("%v: %s, want %s", tt.why, got, tt.want)
		}
	}
}
