// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
)

// dryRun is the annotation that disables changes for a Service.
const dryRun = "weir.dev/dry-run"

// removeDryRuns removes all dry-run annotations, because the final check compares the desired state.
func (b *scheduleBuilder) removeDryRuns() {
	for _, name := range serviceNames {
		b.addStep(func(s *Stage) error {
			return s.ChangeService(name, func(svc *corev1.Service) { setAnnotation(svc, dryRun, "") })
		}, "Service %s: no dry run", name)
	}
}

// serviceNames are few, so that names are reused.
var serviceNames = []string{"shop/web", "shop/api", "blog/web", "blog/db"}

// addService adds a Service with a random spec.
func (b *scheduleBuilder) addService(name string) {
	var edits []serviceEdit
	for range 1 + b.IntN(3) {
		edits = append(edits, b.serviceEdit())
	}
	edits = append(edits, b.addressEdits()...)
	on := b.randomNodes()
	text := ""
	for _, e := range edits {
		text += ", " + e.text
	}
	b.addStep(func(s *Stage) error {
		err := s.AddService(name, func(svc *corev1.Service) {
			for _, e := range edits {
				e.apply(svc)
			}
			moveServicePorts(svc)
		})
		if err != nil {
			return err
		}
		return s.SetEndpoints(name, on)
	}, "Service %s is created%s, endpoints on %v", name, text, on)
}

// addressEdits are edits made at creation only: a Service that changes an address shared with
// others is rejected.
func (b *scheduleBuilder) addressEdits() []serviceEdit {
	switch b.IntN(8) {
	case 0, 1:
		if b.unsharedAddresses {
			return nil
		}
		return []serviceEdit{{"the address of its namespace", func(svc *corev1.Service) {
			setAnnotation(svc, annotation+"azure-pip-name", namespaceIPName(svc.Namespace))
		}}}
	case 2, 3:
		if b.singleFamily {
			return nil
		}
		return []serviceEdit{{"both families", func(svc *corev1.Service) {
			svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
			svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}}}
	}
	return nil
}

// moveServicePorts moves the ports of a Service away from those of the Service that shares its address.
func moveServicePorts(svc *corev1.Service) {
	if svc.Name == "web" {
		return
	}
	for i := range svc.Spec.Ports {
		for _, p := range ports {
			if svc.Spec.Ports[i].Port == p.Port {
				svc.Spec.Ports[i].Port++
			}
		}
	}
}

type serviceEdit struct {
	text  string
	apply func(*corev1.Service)
}

func (b *scheduleBuilder) editService(name string) {
	e := b.serviceEdit()
	b.addStep(func(s *Stage) error {
		return s.ChangeService(name, func(svc *corev1.Service) { e.apply(svc); moveServicePorts(svc) })
	}, "Service %s: %s", name, e.text)
}

// ports are the candidate Service ports.
var ports = []corev1.ServicePort{
	{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "https", Port: 443, Protocol: corev1.ProtocolTCP},
	{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "admin", Port: 8080, Protocol: corev1.ProtocolTCP},
}

func (b *scheduleBuilder) serviceEdit() serviceEdit {
	note := func(key, value string) serviceEdit {
		return serviceEdit{key + "=" + value, func(svc *corev1.Service) { setAnnotation(svc, annotation+key, value) }}
	}
	switch b.IntN(13) {
	case 0, 1:
		return serviceEdit{"Local", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }}
	case 2:
		return serviceEdit{"Cluster", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyCluster) }}
	case 3:
		return note("azure-load-balancer-internal", pickOne(b, "true", "true", ""))
	case 4, 5:
		return b.portsEdit()
	case 6, 7:
		return b.rangesEdit()
	case 8:
		affinity := pickOne(b, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
		return serviceEdit{"affinity " + string(affinity), func(svc *corev1.Service) {
			svc.Spec.SessionAffinity, svc.Spec.SessionAffinityConfig = affinity, nil
		}}
	case 9:
		return note("azure-load-balancer-tcp-idle-timeout", pickOne(b, "", "10", "30"))
	case 10:
		return b.typeEdit()
	case 11:
		on := pickOne(b, "true", "true", "")
		return serviceEdit{"dry run " + on, func(svc *corev1.Service) { setAnnotation(svc, dryRun, on) }}
	}
	return note("azure-disable-load-balancer-floating-ip", pickOne(b, "true", ""))
}

func setAnnotation(svc *corev1.Service, key, value string) {
	if value == "" {
		delete(svc.Annotations, key)
		return
	}
	if svc.Annotations == nil {
		svc.Annotations = map[string]string{}
	}
	svc.Annotations[key] = value
}

// setPolicy sets the external traffic policy if the Service type has one.
func setPolicy(svc *corev1.Service, policy corev1.ServiceExternalTrafficPolicy) {
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		svc.Spec.ExternalTrafficPolicy = policy
		if policy == corev1.ServiceExternalTrafficPolicyCluster {
			svc.Spec.HealthCheckNodePort = 0
		}
	}
}

func (b *scheduleBuilder) portsEdit() serviceEdit {
	var some []corev1.ServicePort
	text := "ports"
	for _, p := range ports {
		if b.IntN(2) == 0 {
			some = append(some, p)
			text += fmt.Sprintf(" %d", p.Port)
		}
	}
	if len(some) == 0 {
		some, text = ports[:1], "ports 80"
	}
	return serviceEdit{text, func(svc *corev1.Service) {
		before := map[string]int32{}
		for _, p := range svc.Spec.Ports {
			before[p.Name] = p.NodePort
		}
		svc.Spec.Ports = nil
		for _, p := range some {
			p.NodePort = before[p.Name]
			svc.Spec.Ports = append(svc.Spec.Ports, p)
		}
	}}
}

func (b *scheduleBuilder) rangesEdit() serviceEdit {
	ranges := pickOne(b, nil, []string{"203.0.113.0/24"}, []string{"192.0.2.0/25", "203.0.113.0/24"}, []string{"192.0.2.128/25"})
	return serviceEdit{fmt.Sprintf("source ranges %v", ranges), func(svc *corev1.Service) {
		if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
			svc.Spec.LoadBalancerSourceRanges = ranges
		}
	}}
}

func (b *scheduleBuilder) typeEdit() serviceEdit {
	if b.IntN(2) == 0 {
		return serviceEdit{"type LoadBalancer", func(svc *corev1.Service) {
			if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
				svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new(app.LoadBalancerClass)
			}
		}}
	}
	return serviceEdit{"type ClusterIP", setClusterIPType}
}

// setClusterIPType makes the Service internal to the cluster.
func setClusterIPType(svc *corev1.Service) {
	svc.Spec.Type, svc.Spec.LoadBalancerClass, svc.Spec.ExternalTrafficPolicy, svc.Spec.HealthCheckNodePort = corev1.ServiceTypeClusterIP, nil, "", 0
	svc.Spec.LoadBalancerSourceRanges, svc.Spec.AllocateLoadBalancerNodePorts = nil, nil
	for i := range svc.Spec.Ports {
		svc.Spec.Ports[i].NodePort = 0
	}
}

func (b *scheduleBuilder) deleteService(name string) {
	b.addStep(func(s *Stage) error { return s.DeleteService(name) }, "Service %s is deleted", name)
}

func (b *scheduleBuilder) randomNodes() map[int]bool {
	on := map[int]bool{}
	for n := range 4 {
		if b.IntN(2) == 0 {
			on[n] = b.IntN(5) > 0
		}
	}
	return on
}

func (b *scheduleBuilder) changeEndpoints(name string) {
	on := b.randomNodes()
	b.addStep(func(s *Stage) error { return s.SetEndpoints(name, on) }, "Service %s has endpoints on %v", name, on)
}

func (b *scheduleBuilder) changeNode() {
	n := b.IntN(4)
	switch b.IntN(6) {
	case 4:
		b.addStep(func(s *Stage) error {
			return s.ChangeNode(n, func(node *corev1.Node) {
				node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
			})
		}, "node %d is out of service", n)
	case 5:
		b.addStep(func(s *Stage) error {
			return s.ChangeNode(n, func(node *corev1.Node) { node.Spec.Taints = nil })
		}, "node %d is in service", n)
	case 0:
		b.addStep(func(s *Stage) error { return s.AddNode(n) }, "node %d is added", n)
	case 1:
		b.addStep(func(s *Stage) error { return s.DeleteNode(n) }, "node %d is deleted", n)
	case 2:
		b.addStep(func(s *Stage) error {
			return s.ChangeNode(n, func(node *corev1.Node) { node.Labels[corev1.LabelNodeExcludeBalancers] = "" })
		}, "node %d is excluded", n)
	default:
		b.addStep(func(s *Stage) error {
			return s.ChangeNode(n, func(node *corev1.Node) { delete(node.Labels, corev1.LabelNodeExcludeBalancers) })
		}, "node %d is not excluded", n)
	}
}

func (b *scheduleBuilder) addUserPool() {
	pool := pickOne(b, "weir-system/nodes.kubernetes", "shop/web.kubernetes", "shop/api.kubernetes", "blog/web.kubernetes")
	switch b.IntN(3) {
	case 0:
		b.addStep(func(s *Stage) error { return s.DeletePool(pool) }, "somebody deletes BackendPool %s", pool)
	case 1:
		b.addStep(func(s *Stage) error {
			return s.ChangePool(pool, func(p *v1alpha1.BackendPool) { p.Spec.Paused = true })
		}, "BackendPool %s is paused", pool)
		b.steps = append(b.steps, Step{time.Minute, "BackendPool " + pool + " is not paused", func(s *Stage) error {
			return s.ChangePool(pool, func(p *v1alpha1.BackendPool) { p.Spec.Paused = false })
		}})
	default:
		at := pickOne(b, "kubernetes/kubernetes", "kubernetes/shop-web", "kubernetes/blog-web")
		ip := pickOne(b, "10.0.9.1", "10.0.9.2")
		b.addStep(func(s *Stage) error { return s.AddForeign(at, ip) }, "somebody puts %s into pool %s", ip, at)
	}
}
