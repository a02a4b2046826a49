// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/config"
)

// A node that is being deleted takes no new flows while a finalizer keeps it, and leaves with the object. One on
// which a pod only starts does not join.
func TestANodeThatIsBeingDeleted(t *testing.T) {
	for _, tt := range []struct {
		name            string
		off             bool
		deleting, after string
	}{
		{"it drains", false, "0 1!", "0"},
		{"without admin states", true, "0 1", "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runStage(t, Options{Configure: func(c *config.Config) { c.EnableNodeAdminState = new(!tt.off) }}, func(s *Stage) {
				newLocalService(s)
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
				failOn(s.ChangeNode(1, func(n *corev1.Node) { n.Finalizers = []string{"example.com/termination"} }))
				failOn(s.ChangeNode(2, func(n *corev1.Node) { n.Finalizers = []string{"example.com/termination"} }))
				s.Sleep(2 * time.Minute)
				s.expectMembers("both are ready", "0 1")
				for _, n := range []int{1, 2} {
					failOn(s.userClient.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(n)}}))
				}
				s.Sleep(time.Minute)
				s.expectMembers("one is being deleted", tt.deleting)
				if !tt.off {
					failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true, 2: false}))
					s.Sleep(time.Minute)
					s.expectMembers("a pod starts on another that is being deleted", tt.deleting)
				}
				failOn(s.ChangeNode(1, func(n *corev1.Node) { n.Finalizers = nil }))
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
				s.Sleep(time.Minute)
				s.expectMembers("it is gone", tt.after)
			})
		})
	}
}

// A node that is Down before a label excludes it, and still serves, leaves ten minutes after it became Down, also if
// nothing else changes in that time and drift is not looked for.
func TestANodeThatIsDownBeforeItIsExcludedLeaves(t *testing.T) {
	withoutDrift := func(c *config.Config) { c.DriftSeconds = new(0) }
	runStage(t, Options{Configure: withoutDrift}, func(s *Stage) {
		newLocalService(s)
		failOn(s.SetEndpoints("shop/web", map[int]bool{1: true}))
		s.Sleep(2 * time.Minute)
		failOn(s.ChangeNode(1, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
		}))
		s.Sleep(time.Minute)
		s.expectMembers("it drains", "1!")
		s.KillProcess(0)
		s.Sleep(time.Minute)
		failOn(s.ChangeNode(1, func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }))
		s.Sleep(5 * time.Minute)
		s.expectMembers("it is excluded", "1!")
		s.Sleep(5 * time.Minute)
		s.expectMembers("ten minutes have passed", "")
	})
}

// A node is deleted and its machine still runs: its member is Down before it leaves, unless no other member is up.
func TestTheMemberOfADeletedNode(t *testing.T) {
	for name, off := range map[string]bool{"it is Down first": false, "without admin states": true} {
		t.Run(name, func(t *testing.T) {
			runStage(t, Options{Configure: func(c *config.Config) { c.EnableNodeAdminState = new(!off) }}, func(s *Stage) {
				newLocalService(s)
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
				s.Sleep(2 * time.Minute)
				failOn(s.deleteNodeAlone(1))
				wasDown := false
				for range 40 {
					s.Sleep(time.Second)
					wasDown = wasDown || s.membersOf("shop-web") == "0 1!"
				}
				s.Sleep(time.Minute)
				if s.expectMembers("another is up", "0"); wasDown == off {
					t.Errorf("it was Down: %v", wasDown)
				}
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
				failOn(s.deleteNodeAlone(0))
				s.Sleep(2 * time.Minute)
				s.expectMembers("it is the last one that serves", map[bool]string{false: "0", true: ""}[off])
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 2: true}))
				s.Sleep(2 * time.Minute)
				s.expectMembers("another has joined", "2")
			})
		})
	}
}

// A node drains while no other member takes new flows: it remains up until another has been there for two probe intervals,
// ten minutes at most. Not if it is shut down or evicted.
func TestTheLastMemberThatIsUp(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		announce             func(*corev1.Node)
		begin, joined, later string
		// leaves is the pool once no pod is on the node any more.
		leaves string
	}{
		{"Karpenter's taint and label", setKarpenterSignals, "0", "0 1", "0! 1", "1"},
		{"the label", func(n *corev1.Node) { n.Labels[corev1.LabelNodeExcludeBalancers] = "" }, "0", "0 1", "0! 1", "1"},
		{"the autoscaler's taint", setTaint("ToBeDeletedByClusterAutoscaler", "1700000000"), "0", "0 1", "0! 1", "1"},
		{"it is shut down", setTaint(corev1.TaintNodeOutOfService, "nodeshutdown"), "0!", "0! 1", "0! 1", "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runStage(t, Options{}, func(s *Stage) {
				newLocalService(s)
				failOn(s.ChangeNode(0, tt.announce))
				s.Sleep(time.Minute)
				s.expectMembers("it is to leave", tt.begin)
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: false}))
				s.Sleep(time.Minute)
				s.expectMembers("a pod starts on another node", tt.joined)
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
				s.Sleep(5 * time.Second)
				s.expectMembers("it has just begun to serve", tt.joined)
				s.Sleep(20 * time.Second)
				s.expectMembers("it has been probed", tt.later)
				failOn(s.SetEndpoints("shop/web", map[int]bool{1: true}))
				s.Sleep(time.Minute)
				s.expectMembers("no pod is left there", tt.leaves)
			})
		})
	}
	runStage(t, Options{}, func(s *Stage) {
		newLocalService(s)
		failOn(s.ChangeNode(0, setKarpenterSignals))
		s.Sleep(9 * time.Minute)
		s.expectMembers("no other node joins", "0")
		s.Sleep(2 * time.Minute)
		s.expectMembers("ten minutes have passed", "0!")
		s.Sleep(10 * time.Minute)
		s.expectMembers("it has been Down for ten minutes", "")
	})
}

func setTaint(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}}
	}
}
