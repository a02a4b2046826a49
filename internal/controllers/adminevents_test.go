// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/nodes"
)

// With the shipped roles, a draining node is Down in its Service's pools, and node and Service get
// one event at the start and one at the end. With the setting disabled, Weir reports entries left
// Down and needs no additional rights.
func TestADrainingNodeIsSeen(t *testing.T) {
	s := newTestEnv(t, "web", "web-2")
	s.createNode(1)
	s.createNode(2)
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("web", "web", s.endpointOn(1), s.endpointOn(2))
	s.createBackendPool("web", "web")
	s.createBackendPool("web-2", "web")
	s.applyRoles("../../config/rbac/cluster-role.yaml")
	s.applyRoles("../../config/admin-state/cluster-role.yaml")
	s.applyRoles("../../config/admin-state/role.yaml")
	r := &requestRecorder{about: map[string]int{}}
	s.replaceController(shippedConfig(r), signals(), func() {})
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.waitForMembers("web-2", s.ip(1), s.ip(2))

	s.setTaints(1, outTaint)
	s.waitForEvent("Service", "web", nodes.EventAdminDown, 1)
	s.waitForNodeEvent(1, nodes.EventAdminDown, 1)
	if text := kubectl(t, "get", "bp", "-n", s.ns, "web"); !strings.Contains(strings.Join(strings.Fields(text), " "), "2 2 0 1 InSync") {
		t.Errorf("kubectl get:\n%s", text)
	}
	described := strings.Join(strings.Fields(kubectl(t, "describe", "bp", "-n", s.ns, "web")), " ")
	if want := fmt.Sprintf("Down: Address: %s Node: %s Reason: out-of-service Since: ", s.ip(1), s.node(1)); !strings.Contains(described, want) {
		t.Errorf("kubectl describe:\n%s", described)
	}
	if text := kubectl(t, "describe", "node", s.node(1)); !strings.Contains(text, "Drains (out-of-service): Down in 2 backend pools, so no new flows come here") {
		t.Errorf("kubectl describe node:\n%s", text)
	}
	s.setTaints(1)
	s.waitForEvent("Service", "web", nodes.EventAdminRestored, 1)
	s.waitForNodeEvent(1, nodes.EventAdminRestored, 1)
	s.waitForMembers("web", s.ip(1), s.ip(2))
	if text := kubectl(t, "get", "bp", "-n", s.ns, "web", "-o", "jsonpath={.status.down}{.status.downCount}"); text != "" {
		t.Errorf("left in the status: %s", text)
	}

	s.setTaints(2, outTaint)
	s.waitForEvent("Service", "web", nodes.EventAdminDown, 2)
	if err := controller.stop(); err != nil {
		t.Fatal(err)
	}
	r = &requestRecorder{about: map[string]int{}}
	var err error
	if controller, err = startController(shippedConfig(r), nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, pool := range []string{"web", "web-2"} {
		s.waitForEvent("BackendPool", pool, nodes.EventLeftDown, 1)
		if text := s.messages("BackendPool", pool, nodes.EventLeftDown)[0]; !strings.Contains(text, fmt.Sprintf("%s (%s)", s.node(2), s.ip(2))) {
			t.Error(text)
		}
	}
	if n := r.sent("GET events") + r.sent("PATCH nodes"); n != 0 {
		t.Errorf("%v", r.about)
	}
}
