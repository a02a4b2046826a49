// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
)

// sharedPool makes pool web contain exactly these members of another cluster, by name, and an address of this one's.
func (env *testEnv) sharedPool(members map[string]string) {
	env.Helper()
	entries := []map[string]any{}
	for name, ip := range members {
		entries = append(entries, map[string]any{"name": name, "properties": map[string]any{"ipAddress": ip}})
	}
	body, err := json.Marshal(map[string]any{"name": "web", "properties": map[string]any{"virtualNetwork": map[string]any{"id": vnetID}, "loadBalancerBackendAddresses": entries}})
	if err != nil {
		env.Fatal(err)
	}
	env.put(env.lbID()+"/backendAddressPools/web", string(body))
}

// waitForOverlap waits for the condition Contested of BackendPool web.
func (env *testEnv) waitForOverlap(part string) {
	env.Helper()
	env.waitUntil(func() string {
		c := meta.FindStatusCondition(env.status("web").Conditions, v1alpha1.ConditionContested)
		if c == nil || c.Reason != v1alpha1.ReasonOverlappingNodes || !strings.Contains(c.Message, part) {
			return fmt.Sprintf("Contested: %v", c)
		}
		return ""
	})
}

// Another cluster shares a pool, with addresses of this cluster's nodes: at takeover nothing is written, later its members
// stay. Once it has left, the nodes join.
func TestAPoolOfOverlappingClusters(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.createNode(2)
	const other = "n2.weir-00000000"
	s.sharedPool(map[string]string{other: s.ip(2)})
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("a", "web", s.endpointOn(1))
	s.createBackendPool("web", "web")
	s.waitForReason("web", v1alpha1.ReasonOverlappingNodes, s.ip(2)+". Nothing was written")
	s.waitForEvent("BackendPool", "web", v1alpha1.ReasonOverlappingNodes, 1)
	if n := s.countWrites(); n > 0 {
		t.Errorf("%d writes", n)
	}
	s.sharedPool(nil)
	s.waitForMembers("web", s.ip(1))
	s.waitForReason("web", v1alpha1.ReasonInSync, "")

	s.sharedPool(map[string]string{other: s.ip(2), s.node(1): s.ip(1)})
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2))
	s.waitForOverlap(s.ip(2) + ". Weir keeps")
	s.changeSlice("a", s.endpointOn(1))
	s.waitForReason("web", v1alpha1.ReasonInSync, "1 node")
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2))
	s.waitForOverlap(s.ip(2) + ". Weir keeps")
	s.sharedPool(map[string]string{s.node(1): s.ip(1)})
	s.waitForMembers("web", s.ip(1), s.ip(2)) // found although nothing changes in the cluster
	if got := s.status("web"); len(got.WrittenAddresses) != 2 {
		t.Errorf("%v are recorded", got.WrittenAddresses)
	}
}
