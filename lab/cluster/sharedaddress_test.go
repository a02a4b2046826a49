// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers/services/servicelb"
)

// loadBalancersWith lists the load balancers with an address in a node pool, and its admin state.
func (s *Stage) loadBalancersWith(ip string) string {
	c, err := s.readAzure()
	failOn(err)
	var balancers []string
	for _, b := range c.balancers {
		for _, p := range b.Properties.Pools {
			for _, m := range p.Properties.Addresses {
				if m.Properties.IP == ip && p.Name == clusterName {
					balancers = append(balancers, strings.TrimSpace(b.Name+" "+strings.Replace(m.Properties.Admin, "None", "", 1)))
				}
			}
		}
	}
	slices.Sort(balancers)
	return strings.Join(balancers, ", ")
}

// Two nodes on two load balancers share an address: it is in the pools of the first by name, and
// Down while both drain.
func TestNodesWithOneAddressOnTwoLoadBalancers(t *testing.T) {
	twins := func(c *config.Config) {
		disableDrift(c)
		c.EnableNodeAdminState = new(true)
		c.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, {Name: secondName}}
	}
	runStage(t, Options{Configure: twins}, func(s *Stage) {
		for n := range 4 {
			failOn(s.AddNode(n))
		}
		on := func(number int, place string) {
			failOn(s.ChangeNode(number, func(n *corev1.Node) { n.Labels[placementLabel] = place }))
		}
		v4, _ := nodeAddresses(1)
		current := func(about, want string) {
			t.Helper()
			s.Sleep(time.Minute)
			if got := s.loadBalancersWith(v4); got != want {
				t.Errorf("%s: %s is on %q, want %q", about, v4, got, want)
			}
		}
		leaves := func(number int, leaves bool) {
			failOn(s.ChangeNode(number, func(n *corev1.Node) {
				n.Spec.Taints = nil
				if leaves {
					n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
				}
			}))
		}
		excluded := func(number int, isExcluded bool) {
			failOn(s.ChangeNode(number, func(n *corev1.Node) {
				if delete(n.Labels, corev1.LabelNodeExcludeBalancers); isExcluded {
					n.Labels[corev1.LabelNodeExcludeBalancers] = ""
				}
			}))
		}
		on(0, clusterName)
		on(1, clusterName)
		on(2, secondName)
		on(3, secondName)
		s.Start()
		for _, name := range []string{clusterName, secondName} {
			failOn(s.AddService("shop/"+name, func(svc *corev1.Service) {
				setAnnotation(svc, annotation+"azure-load-balancer-configurations", name)
			}))
			failOn(s.SetEndpoints("shop/"+name, map[int]bool{1: true, 2: true}))
		}
		s.Sleep(time.Minute)
		current("one node", clusterName)
		n := &corev1.Node{}
		failOn(s.userClient.Get(ctx, client.ObjectKey{Name: nodeName(2)}, n))
		n.Status.Addresses[0].Address = v4
		failOn(s.userClient.Status().Update(ctx, n))
		current("two nodes", clusterName)
		if text := s.synced("nodes." + secondName); !strings.Contains(text, "left out: node node-2: its address "+v4+" is also that of node node-1, which is on load balancer "+clusterName+" and counts") {
			t.Error(text)
		}
		leaves(1, true)
		current("the first leaves", clusterName)
		leaves(2, true)
		current("both leave", clusterName+" Down")
		leaves(1, false)
		current("the other leaves", clusterName)
		on(1, secondName)
		current("the first is on the other load balancer", secondName)
		on(1, clusterName)
		current("it is back", clusterName)
		leaves(2, false)
		excluded(1, true)
		current("the first is excluded, and serves", secondName)
		excluded(1, false)
		current("it is not excluded any more", clusterName)
		failOn(s.deleteNodeAlone(1))
		current("the first is gone", secondName)
	})
}

// A Service with an SCTP port has all ports of its private address while alone there. If others
// share the address, all other ports are served, and its status reports the SCTP port.
func TestAPortOfSCTPAtASharedAddress(t *testing.T) {
	runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		at := func(address string, ports ...corev1.ServicePort) func(*corev1.Service) {
			return func(svc *corev1.Service) {
				svc.Spec.Ports = ports
				setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
				setAnnotation(svc, annotation+"azure-load-balancer-ipv4", address)
			}
		}
		tcp := func(port int32) corev1.ServicePort {
			return corev1.ServicePort{Name: fmt.Sprint("tcp-", port), Port: port, Protocol: corev1.ProtocolTCP}
		}
		sctp := corev1.ServicePort{Name: "sctp", Port: 3868, Protocol: corev1.ProtocolSCTP}
		has := func(about string, refused bool, want ...string) {
			t.Helper()
			s.Sleep(30 * time.Second)
			c, err := s.readAzure()
			failOn(err)
			var rules []string
			for _, b := range c.balancers {
				for _, r := range b.Properties.Rules {
					rules = append(rules, fmt.Sprintf("%s %d", r.Properties.Protocol, r.Properties.FrontendPort))
				}
			}
			slices.Sort(rules)
			if !slices.Equal(rules, want) {
				t.Errorf("%s: rules %v, want %v", about, rules, want)
			}
			svc := &corev1.Service{}
			failOn(s.userClient.Get(ctx, parseKey("shop/web"), svc))
			var errors []string
			for _, in := range svc.Status.LoadBalancer.Ingress {
				for _, p := range in.Ports {
					if p.Error != nil {
						errors = append(errors, fmt.Sprint(p.Protocol, p.Port, *p.Error))
					}
				}
			}
			accepted := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeAccepted)
			if refused != slices.Equal(errors, []string{"SCTP3868weir.dev/UnsupportedProtocol"}) || refused != (accepted.Reason == servicelb.ReasonPartial) || accepted.Status != "True" {
				t.Errorf("%s: refused ports %v, %s %s: %s", about, errors, accepted.Status, accepted.Reason, accepted.Message)
			}
		}
		failOn(s.AddService("shop/web", at("10.0.0.50", tcp(80), sctp)))
		has("alone", false, "All 0")
		failOn(s.AddService("shop/beside", at("10.0.0.50", tcp(81))))
		has("another comes", true, "Tcp 80", "Tcp 81")
		failOn(s.AddService("shop/elsewhere", at("10.0.0.60", tcp(80))))
		failOn(s.AddService("blog/thief", at("10.0.0.60", tcp(80))))
		has("others elsewhere", true, "Tcp 80", "Tcp 80", "Tcp 81")
		failOn(s.ChangeService("shop/beside", at("10.0.0.70", tcp(81))))
		has("the other leaves", false, "All 0", "Tcp 80", "Tcp 81")
		failOn(s.ChangeService("shop/beside", at("10.0.0.50", tcp(81), tcp(82))))
		has("the other is back", true, "Tcp 80", "Tcp 80", "Tcp 81", "Tcp 82")
		failOn(s.DeleteService("shop/beside"))
		has("the other is gone", false, "All 0", "Tcp 80")
		failOn(s.AddService("blog/intruder", at("10.0.0.50", tcp(83))))
		has("one of another namespace wants it", false, "All 0", "Tcp 80")
	})
}

// A Service with an SCTP port joins a shared address: no Service loses a port that Azure can serve.
func TestAPortOfSCTPComesToAnAddress(t *testing.T) {
	runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		for i, ports := range [][]corev1.ServicePort{
			{{Name: "tcp", Port: 81, Protocol: corev1.ProtocolTCP}},
			{{Name: "sctp", Port: 3868, Protocol: corev1.ProtocolSCTP}, {Name: "tcp", Port: 80, Protocol: corev1.ProtocolTCP}},
		} {
			failOn(s.AddService([]string{"shop/beside", "shop/web"}[i], func(svc *corev1.Service) {
				svc.Spec.Ports = ports
				setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
				setAnnotation(svc, annotation+"azure-load-balancer-ipv4", "10.0.0.50")
			}))
			s.Sleep(time.Minute)
		}
		c, err := s.readAzure()
		failOn(err)
		for _, name := range []string{"shop/beside", "shop/web"} {
			svc := &corev1.Service{}
			failOn(s.userClient.Get(ctx, parseKey(name), svc))
			if c := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeProgrammed); c == nil || c.Status != "True" {
				t.Errorf("%s: %+v", name, c)
			}
			at := slices.IndexFunc(c.balancers[0].Properties.Rules, func(r rule) bool { return strings.HasPrefix(r.Name, ownerName(svc)) && r.Properties.Protocol == "Tcp" })
			if at < 0 {
				t.Errorf("%s has no rule", name)
			}
		}
	})
}
