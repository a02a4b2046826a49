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

// eventsAlone configures pools of network interfaces and disables drift reads that could hide a
// missed event.
func eventsAlone(c *config.Config) {
	ofInterfaces(c)
	rarely(c)
}

// addNodeOn creates a node with a provider ID.
func (s *Stage) addNodeOn(number int, providerID string) error {
	v4, v6 := addressesOf(number)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(number), Labels: map[string]string{"kubernetes.io/hostname": nodeName(number)}}}
	n.Spec.ProviderID = providerID
	status := corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: v4}, {Type: corev1.NodeInternalIP, Address: v6}}}
	if err := s.people.Create(ctx, n); err != nil {
		return err
	}
	n.Status = status
	return s.people.Status().Update(ctx, n)
}

// deleteNodeAlone deletes a node but not its machine.
func (s *Stage) deleteNodeAlone(number int) error {
	return s.people.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(number)}})
}

// poolOfNodes returns a BackendPool of all nodes.
func (s *Stage) poolOfNodes(name string) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{}
	must(s.people.Get(ctx, client.ObjectKey{Namespace: "weir-system", Name: name}, p))
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
	for about, configure := range map[string]func(*config.Config){"interfaces": eventsAlone, "addresses": rarely} {
		t.Run(about, func(t *testing.T) {
			stage(t, Options{Configure: configure}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/web", nil))
				must(s.Settles(5 * time.Minute))
				for n := range later {
					must(s.makeMachine(n))
					must(s.addNodeOn(n, map[bool]string{true: "azure://" + s.machineID(n)}[n != 3]))
				}
				must(s.ChangeNode(6, func(n *corev1.Node) { n.Labels[corev1.LabelNodeExcludeBalancers] = "" }))
				must(s.ChangeNode(9, func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }))
				must(s.makeMachine(12))
				must(s.addNodeOn(12, "azure://"+s.machineID(12)))
				n := &corev1.Node{}
				must(s.people.Get(ctx, client.ObjectKey{Name: nodeName(12)}, n))
				addresses := n.Status.Addresses
				n.Status.Addresses = nil
				must(s.people.Status().Update(ctx, n))
				s.Pass(2 * time.Minute)
				s.since()
				for number, change := range later {
					must(s.ChangeNode(number, func(n *corev1.Node) { change(s, n) }))
				}
				must(s.people.Get(ctx, client.ObjectKey{Name: nodeName(12)}, n))
				n.Status.Addresses = addresses
				must(s.people.Status().Update(ctx, n))
				s.Pass(8 * time.Second)
				writes, _ := s.since()
				for _, number := range []int{3, 6, 9, 12} {
					if s.interfaces() && !strings.Contains(strings.Join(writes, "\n"), s.nicOf(number)) {
						t.Errorf("node %d is not written within seconds: %v", number, writes)
					}
				}
				must(s.Settles(time.Minute))
			})
		})
	}
}

// Nodes without a usable machine are listed by name: the pool is in sync with true counts and no
// unneeded write. A machine created later joins.
func TestNodesWithoutAMachine(t *testing.T) {
	stage(t, Options{Configure: eventsAlone}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(5 * time.Minute))
		must(s.addNodeOn(10, ""))
		must(s.addNodeOn(11, "aws:///eu-west-1a/i-0123456789abcdef0"))
		must(s.addNodeOn(12, "azure://"+compute+"virtualMachines/node-12"))
		must(s.addNodeOn(13, "azure://"+compute+"virtualMachineScaleSets/blue/virtualMachines/13"))
		s.Pass(time.Minute)
		want := "Level 3 of 3: level with 3 nodes; left out: node node-10: it has no spec.providerID, so its machine is not known: the cloud provider has to set it; " +
			`node node-11: its spec.providerID "aws:///eu-west-1a/i-0123456789abcdef0" names no virtual machine of Azure; ` +
			"node node-12: Azure has no virtual machine node-12; node node-13: Azure has no instance 13 of scale set blue"
		if got := s.synced("nodes.kubernetes"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if u := s.poolOfNodes("nodes.kubernetes").Status.Unusable; len(u) != 2 || u[0].Node != "node-12" || u[1].Node != "node-13" {
			t.Errorf("unusable %v", u)
		}
		s.since()
		s.Pass(time.Hour)
		if writes, _ := s.since(); len(writes) > 0 {
			t.Errorf("written: %v", writes)
		}
		must(s.deleteNodeAlone(10))
		must(s.deleteNodeAlone(11))
		must(s.makeMachine(12))
		must(s.makeMachine(13))
		must(s.Settles(3 * time.Minute))
		if got := s.synced("nodes.kubernetes"); got != "Level 5 of 5: level with 5 nodes" {
			t.Error(got)
		}
	})
}

// A node is deleted, registers again and is deleted before it gets its provider ID: its remaining
// machine is removed within seconds.
func TestANodeThatIsDeletedBeforeItIsToldItsMachine(t *testing.T) {
	stage(t, Options{Configure: eventsAlone}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(5 * time.Minute))
		must(s.deleteNodeAlone(1))
		must(s.addNodeOn(1, ""))
		s.Pass(5 * time.Minute)
		must(s.deleteNodeAlone(1))
		s.Pass(2 * time.Minute)
		if got := s.synced("nodes.kubernetes"); got != "Level 2 of 2: level with 2 nodes" {
			t.Error(got)
		}
	})
}

// A node is deleted and its machine remains: the machine is removed from all pools, even if no
// process saw the deletion. Machines without a node are not touched.
func TestANodeIsDeletedAndItsMachineStays(t *testing.T) {
	for about, watched := range map[string]bool{"watched": true, "while Weir is away": false} {
		t.Run(about, func(t *testing.T) {
			stage(t, Options{Configure: eventsAlone}, func(s *Stage) {
				for n := range 6 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/web", func(svc *corev1.Service) {
					svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
				}))
				must(s.AddService("shop/inside", func(svc *corev1.Service) {
					svc.Annotations = map[string]string{annotation + "azure-load-balancer-internal": "true"}
				}))
				must(s.Settles(5 * time.Minute))
				must(s.AddForeign("kubernetes/kubernetes", "10.0.8.8"))
				if !watched {
					s.Kill(0)
				}
				for n := range 3 { // a virtual machine, and an instance of either scale set
					must(s.deleteNodeAlone(n))
				}
				must(s.Settles(2 * time.Minute))
				s.Pass(time.Hour)
				must(s.Level())
				for n := range 3 { // they return
					must(s.AddNode(n))
				}
				must(s.Settles(2 * time.Minute))
				must(s.keepTheirWayOut(6))
			})
		})
	}
}

// A node is recreated under its name and gets its provider ID later: it is removed like a deleted
// node, or stays, and finally is a member.
func TestANodeIsMadeAgain(t *testing.T) {
	stage(t, Options{Configure: eventsAlone}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(5 * time.Minute))
		s.since()
		for n := range 3 {
			must(s.deleteNodeAlone(n))
			must(s.addNodeOn(n, ""))
		}
		s.Pass(time.Minute)
		if writes := s.machineWrites(); len(writes) > 0 {
			t.Errorf("machines leave whose nodes are there: %v", writes)
		}
		for n := range 3 {
			must(s.ChangeNode(n, func(node *corev1.Node) { node.Spec.ProviderID = "azure://" + s.machineID(n) }))
		}
		must(s.Settles(time.Minute))
		if writes := s.machineWrites(); len(writes) > 0 {
			t.Errorf("machines are written that were members all the time: %v", writes)
		}
		must(s.deleteNodeAlone(1))
		must(s.Settles(2 * time.Minute))
	})
}

// Two nodes share an address: it is Down while both drain, in either order.
func TestTwoNodesWithOneAddress(t *testing.T) {
	signals := func(c *config.Config) { rarely(c); c.EnableNodeAdminState = new(true) }
	stage(t, Options{Configure: signals}, func(s *Stage) {
		leaves := func(number int, is bool) {
			must(s.ChangeNode(number, func(n *corev1.Node) {
				n.Spec.Taints = nil
				if is {
					n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
				}
			}))
		}
		down := func(want string) {
			t.Helper()
			s.Pass(time.Minute)
			var got []string
			for _, d := range s.poolOfNodes("nodes.kubernetes").Status.Down {
				got = append(got, d.Node)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("Down are %v, want %q", got, want)
			}
		}
		for n := range 2 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		s.Pass(2 * time.Minute)
		leaves(0, true)
		down("node-0")
		must(s.AddNode(7))
		n := &corev1.Node{}
		must(s.people.Get(ctx, client.ObjectKey{Name: nodeName(7)}, n))
		v4, _ := addressesOf(0)
		n.Status.Addresses[0].Address = v4
		must(s.people.Status().Update(ctx, n))
		down("")
		leaves(7, true)
		down("node-0")
		leaves(0, false)
		down("")
		must(s.deleteNodeAlone(0))
		down("node-7")
		leaves(7, false)
		down("")
	})
}
