// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/config"
)

// disableDriftReads configures pools of network interfaces and disables drift reads that could hide a
// missed event.
func disableDriftReads(c *config.Config) {
	useInterfaces(c)
	disableDrift(c)
}

func (s *Stage) addNodeOn(number int, providerID string) error {
	v4, v6 := nodeAddresses(number)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(number), Labels: map[string]string{"kubernetes.io/hostname": nodeName(number)}}}
	n.Spec.ProviderID = providerID
	status := corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: v4}, {Type: corev1.NodeInternalIP, Address: v6}}}
	if err := s.userClient.Create(ctx, n); err != nil {
		return err
	}
	n.Status = status
	return s.userClient.Status().Update(ctx, n)
}

// deleteNodeAlone deletes a node but not its machine.
func (s *Stage) deleteNodeAlone(number int) error {
	return s.userClient.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(number)}})
}

func (s *Stage) poolOfNodes(name string) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{}
	failOn(s.userClient.Get(ctx, client.ObjectKey{Namespace: "weir-system", Name: name}, p))
	return p
}

// synced formats the Synced condition and counts of a pool.
func (s *Stage) synced(name string) string {
	p := s.poolOfNodes(name)
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced)
	return fmt.Sprintf("%s %d of %d: %s", c.Reason, *p.Status.Observed-*p.Status.Foreign, *p.Status.Desired, c.Message)
}

// A node that gets a membership requirement later joins within seconds of that event, without a
// drift read.
func TestANodeThatBecomesAMemberLater(t *testing.T) {
	later := map[int]func(*Stage, *corev1.Node){ // virtual machines
		3: func(s *Stage, n *corev1.Node) { n.Spec.ProviderID = "azure://" + s.machineID(3) },
		6: func(_ *Stage, n *corev1.Node) { delete(n.Labels, corev1.LabelNodeExcludeBalancers) },
		9: func(_ *Stage, n *corev1.Node) { delete(n.Labels, "node-role.kubernetes.io/control-plane") },
	}
	for about, configure := range map[string]func(*config.Config){"interfaces": disableDriftReads, "addresses": disableDrift} {
		t.Run(about, func(t *testing.T) {
			runStage(t, Options{Configure: configure}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/web", nil))
				failOn(s.WaitInSync(5 * time.Minute))
				for n := range later {
					failOn(s.createMachine(n))
					failOn(s.addNodeOn(n, map[bool]string{true: "azure://" + s.machineID(n)}[n != 3]))
				}
				failOn(s.ChangeNode(6, func(n *corev1.Node) { n.Labels[corev1.LabelNodeExcludeBalancers] = "" }))
				failOn(s.ChangeNode(9, func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }))
				failOn(s.createMachine(12))
				failOn(s.addNodeOn(12, "azure://"+s.machineID(12)))
				n := &corev1.Node{}
				failOn(s.userClient.Get(ctx, client.ObjectKey{Name: nodeName(12)}, n))
				addresses := n.Status.Addresses
				n.Status.Addresses = nil
				failOn(s.userClient.Status().Update(ctx, n))
				s.Sleep(2 * time.Minute)
				s.trafficSince()
				for number, change := range later {
					failOn(s.ChangeNode(number, func(n *corev1.Node) { change(s, n) }))
				}
				failOn(s.userClient.Get(ctx, client.ObjectKey{Name: nodeName(12)}, n))
				n.Status.Addresses = addresses
				failOn(s.userClient.Status().Update(ctx, n))
				s.Sleep(8 * time.Second)
				writes, _ := s.trafficSince()
				for _, number := range []int{3, 6, 9, 12} {
					if s.hasInterfaces() && !strings.Contains(strings.Join(writes, "\n"), s.nicOf(number)) {
						t.Errorf("node %d is not written within seconds: %v", number, writes)
					}
				}
				failOn(s.WaitInSync(time.Minute))
			})
		})
	}
}

// Nodes without a usable machine are listed by name: the pool is in sync with true counts and no
// unneeded write. A machine created later joins.
func TestNodesWithoutAMachine(t *testing.T) {
	runStage(t, Options{Configure: disableDriftReads}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(5 * time.Minute))
		failOn(s.addNodeOn(10, ""))
		failOn(s.addNodeOn(11, "aws:///eu-west-1a/i-0123456789abcdef0"))
		failOn(s.addNodeOn(12, "azure://"+computeID+"virtualMachines/node-12"))
		failOn(s.addNodeOn(13, "azure://"+computeID+"virtualMachineScaleSets/blue/virtualMachines/13"))
		s.Sleep(time.Minute)
		want := "InSync 3 of 3: in sync with 3 nodes; left out: node node-10: it has no spec.providerID, so its machine is not known: the cloud provider has to set it; " +
			`node node-11: its spec.providerID "aws:///eu-west-1a/i-0123456789abcdef0" names no virtual machine of Azure; ` +
			"node node-12: Azure has no virtual machine node-12; node node-13: Azure has no instance 13 of scale set blue"
		if got := s.synced("nodes.kubernetes"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if u := s.poolOfNodes("nodes.kubernetes").Status.Unusable; len(u) != 2 || u[0].Node != "node-12" || u[1].Node != "node-13" {
			t.Errorf("unusable %v", u)
		}
		s.trafficSince()
		s.Sleep(time.Hour)
		if writes, _ := s.trafficSince(); len(writes) > 0 {
			t.Errorf("written: %v", writes)
		}
		failOn(s.deleteNodeAlone(10))
		failOn(s.deleteNodeAlone(11))
		failOn(s.createMachine(12))
		failOn(s.createMachine(13))
		failOn(s.WaitInSync(3 * time.Minute))
		if got := s.synced("nodes.kubernetes"); got != "InSync 5 of 5: in sync with 5 nodes" {
			t.Error(got)
		}
	})
}

// A node is deleted, registers again and is deleted before it gets its provider ID: its remaining
// machine is removed.
func TestNodeDeletedBeforeItHasAProviderID(t *testing.T) {
	runStage(t, Options{Configure: disableDriftReads}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(5 * time.Minute))
		failOn(s.deleteNodeAlone(1))
		failOn(s.addNodeOn(1, ""))
		s.Sleep(5 * time.Minute)
		failOn(s.deleteNodeAlone(1))
		s.Sleep(4 * time.Minute)
		if got := s.synced("nodes.kubernetes"); got != "InSync 2 of 2: in sync with 2 nodes" {
			t.Error(got)
		}
	})
}

// A node is deleted and its machine remains: the machine is removed from all pools, even if no
// process saw the deletion. Machines without a node are not touched.
func TestANodeIsDeletedAndItsMachineStays(t *testing.T) {
	for about, watched := range map[string]bool{"watched": true, "while Weir is away": false} {
		t.Run(about, func(t *testing.T) {
			runStage(t, Options{Configure: disableDriftReads}, func(s *Stage) {
				for n := range 6 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/web", func(svc *corev1.Service) {
					svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
				}))
				failOn(s.AddService("shop/inside", func(svc *corev1.Service) {
					svc.Annotations = map[string]string{annotation + "azure-load-balancer-internal": "true"}
				}))
				failOn(s.WaitInSync(5 * time.Minute))
				failOn(s.AddForeign("kubernetes/kubernetes", "10.0.8.8"))
				if !watched {
					s.KillProcess(0)
				}
				for n := range 3 { // a virtual machine, and an instance of either scale set
					failOn(s.deleteNodeAlone(n))
				}
				failOn(s.WaitInSync(5 * time.Minute))
				s.Sleep(time.Hour)
				failOn(s.CheckInSync())
				for n := range 3 { // they return
					failOn(s.AddNode(n))
				}
				failOn(s.WaitInSync(2 * time.Minute))
				failOn(s.checkOutboundPool(6))
			})
		})
	}
}

// A node is recreated under its name and gets its provider ID later: it is removed like a deleted
// node, or is retained, and finally is a member.
func TestANodeIsMadeAgain(t *testing.T) {
	runStage(t, Options{Configure: disableDriftReads}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(5 * time.Minute))
		s.trafficSince()
		for n := range 3 {
			failOn(s.deleteNodeAlone(n))
			failOn(s.addNodeOn(n, ""))
		}
		s.Sleep(time.Minute)
		if writes := s.machineWrites(); len(writes) > 0 {
			t.Errorf("machines leave whose nodes are there: %v", writes)
		}
		for n := range 3 {
			failOn(s.ChangeNode(n, func(node *corev1.Node) { node.Spec.ProviderID = "azure://" + s.machineID(n) }))
		}
		failOn(s.WaitInSync(time.Minute))
		if writes := s.machineWrites(); len(writes) > 0 {
			t.Errorf("machines are written that were members all the time: %v", writes)
		}
		failOn(s.deleteNodeAlone(1))
		failOn(s.WaitInSync(4 * time.Minute))
	})
}

// Two nodes share an address: it is Down while both drain, in either order.
func TestTwoNodesWithOneAddress(t *testing.T) {
	signals := func(c *config.Config) { disableDrift(c); c.EnableNodeAdminState = new(true) }
	runStage(t, Options{Configure: signals}, func(s *Stage) {
		leaves := func(number int, leaves bool) {
			failOn(s.ChangeNode(number, func(n *corev1.Node) {
				n.Spec.Taints = nil
				if leaves {
					n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
				}
			}))
		}
		down := func(want string) {
			t.Helper()
			s.Sleep(time.Minute)
			var got []string
			for _, d := range s.poolOfNodes("nodes.kubernetes").Status.Down {
				got = append(got, d.Node)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("Down are %v, want %q", got, want)
			}
		}
		for n := range 2 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		s.Sleep(2 * time.Minute)
		leaves(0, true)
		down("node-0")
		failOn(s.AddNode(7))
		n := &corev1.Node{}
		failOn(s.userClient.Get(ctx, client.ObjectKey{Name: nodeName(7)}, n))
		v4, _ := nodeAddresses(0)
		n.Status.Addresses[0].Address = v4
		failOn(s.userClient.Status().Update(ctx, n))
		down("")
		leaves(7, true)
		down("node-0")
		leaves(0, false)
		down("")
		failOn(s.deleteNodeAlone(0))
		down("node-7")
		leaves(7, false)
		down("")
	})
}
