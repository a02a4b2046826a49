// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
)

// class is Weir's load balancer class.
const class = "weir.dev/azure"

// createLoadBalancerService creates a load balancer Service with endpoints on these nodes.
func (l *lab) createLoadBalancerService(name string, edit func(*corev1.Service), nodes ...string) {
	l.t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace, Annotations: map[string]string{}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class),
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	if edit != nil {
		edit(s)
	}
	l.must(l.cluster.Create(l.t.Context(), s))
	l.must(l.cluster.Create(l.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name + "-1", Namespace: l.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints(nodes),
	}))
}

// edit edits a Service and retries on conflict with Weir's status writes.
func (l *lab) edit(name string, edit func(*corev1.Service)) {
	l.t.Helper()
	var s corev1.Service
	l.editObject(key(l.namespace, name), &s, func() { edit(&s) })
}

// editObject changes an object that Weir may write at the same time.
func (l *lab) editObject(name client.ObjectKey, obj client.Object, edit func()) {
	l.t.Helper()
	for {
		l.must(l.cluster.Get(l.t.Context(), name, obj))
		edit()
		err := l.cluster.Update(l.t.Context(), obj)
		if apierrors.IsConflict(err) {
			continue
		}
		l.must(err)
		return
	}
}

// ingress waits for the addresses in the status of a Service.
func (l *lab) ingress(name string, n int) []string {
	l.t.Helper()
	var ips []string
	l.eventually("addresses of Service "+name, func() error {
		var s corev1.Service
		if err := l.cluster.Get(l.t.Context(), key(l.namespace, name), &s); err != nil {
			return err
		}
		ips = nil
		for _, in := range s.Status.LoadBalancer.Ingress {
			ips = append(ips, in.IP)
		}
		if len(ips) != n {
			return fmt.Errorf("has %v, want %d", ips, n)
		}
		return nil
	})
	return ips
}

// parts returns the kinds and names of a load balancer's parts.
func (l *lab) parts(id string) []string {
	l.t.Helper()
	body, ok := l.emulator.Get(id)
	if !ok {
		return nil
	}
	var shown struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	l.must(json.Unmarshal(body, &shown))
	var names []string
	for kind, short := range map[string]string{"frontendIPConfigurations": "frontend", "backendAddressPools": "pool", "probes": "probe", "loadBalancingRules": "rule"} {
		var list []struct {
			Name string `json:"name"`
		}
		if raw := shown.Properties[kind]; raw != nil {
			l.must(json.Unmarshal(raw, &list))
		}
		for _, part := range list {
			names = append(names, short+" "+part.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (l *lab) owner(name string) string {
	l.t.Helper()
	var s corev1.Service
	l.must(l.cluster.Get(l.t.Context(), key(l.namespace, name), &s))
	return ("a" + strings.ReplaceAll(string(s.UID), "-", ""))[:32]
}

// expectParts waits until a load balancer has exactly these parts.
func (l *lab) expectParts(id string, want ...string) {
	l.t.Helper()
	slices.Sort(want)
	l.eventually("load balancer", func() error {
		if got := l.parts(id); !slices.Equal(got, want) {
			return fmt.Errorf("has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

func (l *lab) gone(about string, of client.Object) {
	l.t.Helper()
	l.eventually(about, func() error {
		err := l.cluster.Get(l.t.Context(), client.ObjectKeyFromObject(of), of)
		if err == nil {
			return errors.New("is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// A Service of Weir's class gets a load balancer and an address, its endpoints are followed, and
// everything is deleted with it.
func TestAServiceGetsALoadBalancer(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","subnetName":"nodes","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.createLoadBalancerService("web", nil, n1)
	weir := l.controller("--leader-elect=false", "--cluster-name", l.namespace) // on a busy machine an election logs errors

	ip := l.ingress("web", 1)[0]
	owner, own := l.owner("web"), l.namespace+"-web"
	var s corev1.Service
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "web"), &s))
	probe := fmt.Sprintf("probe %s-TCP-%d", owner, s.Spec.HealthCheckNodePort)
	l.expectParts(l.loadBalancer(), "frontend "+owner, "pool "+own, probe, "rule "+owner+"-TCP-80")
	if body, _ := l.emulator.Get(network + "/publicIPAddresses/" + l.namespace + "-" + owner); !strings.Contains(string(body), `"`+ip+`"`) {
		t.Errorf("the status says %s, the public IP is\n%s", ip, body)
	}
	l.becomes(own, "10.0.0.1")
	if writes := l.writes(own); writes != 1 {
		t.Errorf("%d writes of the pool alone: the load balancer's write makes it empty, and one of its own fills it", writes)
	}
	l.move("web", n1, n2)
	l.becomes(own, "10.0.0.1", "10.0.0.2")
	l.expectEvents("web", "EnsuringLoadBalancer", "EnsuredLoadBalancer")

	// A second Service, for all nodes, shares the load balancer.
	l.createLoadBalancerService("all", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster }, n1)
	l.ingress("all", 1)
	second := l.owner("all")
	l.expectParts(l.loadBalancer(), "frontend "+owner, "pool "+own, probe, "rule "+owner+"-TCP-80",
		"frontend "+second, "pool "+l.namespace, "probe "+second+"-TCP-80", "rule "+second+"-TCP-80")
	l.expectMembers(l.namespace, "10.0.0.1", "10.0.0.2")

	l.movesWhenFilled("all", second)

	// An internal Service moves to the twin.
	l.edit("all", func(s *corev1.Service) {
		s.Annotations["service.beta.kubernetes.io/azure-load-balancer-internal"] = "true"
	})
	l.expectParts(l.loadBalancer()+"-internal", "frontend "+second, "pool "+l.namespace, "probe "+second+"-TCP-80", "rule "+second+"-TCP-80")
	l.expectParts(l.loadBalancer(), "frontend "+owner, "pool "+own, "pool "+l.namespace, probe, "rule "+owner+"-TCP-80")
	l.eventually("the public IP of the internal one", func() error {
		if _, ok := l.emulator.Get(network + "/publicIPAddresses/" + l.namespace + "-" + second); ok {
			return fmt.Errorf("is still there")
		}
		return nil
	})

	// All created resources are deleted with the Services.
	for _, name := range []string{"all", "web"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace}}
		l.must(l.cluster.Delete(t.Context(), s))
		l.gone("Service "+name, s)
	}
	for _, id := range []string{l.loadBalancer(), l.loadBalancer() + "-internal", network + "/publicIPAddresses/" + l.namespace + "-" + owner} {
		if body, ok := l.emulator.Get(id); ok {
			t.Errorf("left in Azure: %s", body)
		}
	}
	l.eventually("BackendPools", func() error {
		var pools v1alpha1.BackendPoolList
		l.must(l.cluster.List(t.Context(), &pools))
		for _, p := range pools.Items {
			if strings.HasPrefix(p.Spec.LoadBalancer.Name, l.namespace) {
				return fmt.Errorf("%s/%s is still there", p.Namespace, p.Name)
			}
		}
		return nil
	})
	for _, trouble := range []string{"forbidden", "panic", "ERROR"} {
		if strings.Contains(weir.ReadOutput(), trouble) {
			t.Errorf("the log speaks of %q", trouble)
		}
	}
	l.must(weir.Signal(syscall.SIGTERM))
}

// movesWhenFilled gives a Service its own pool and back: its rule moves exactly when the target is
// filled.
func (l *lab) movesWhenFilled(name, owner string) {
	l.t.Helper()
	own, since := l.namespace+"-"+name, uint64(0)
	for _, c := range l.emulator.Calls() {
		since = c.Seq
	}
	policy := func(to corev1.ServiceExternalTrafficPolicy) {
		l.edit(name, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = to, 0 })
	}
	policy(corev1.ServiceExternalTrafficPolicyLocal)
	l.eventually("the rule at its own pool", func() error {
		if pool := l.poolOf(owner + "-TCP-80"); !strings.EqualFold(pool, own) {
			return fmt.Errorf("sends flows to %s", pool)
		}
		return nil
	})
	var puts []string
	for _, c := range l.emulator.Calls(func(c armemu.Call) bool { return c.Seq > since && c.Method == "PUT" }) {
		_, name, _ := strings.Cut(strings.ToLower(c.Resource), "/loadbalancers/")
		puts = append(puts, name)
	}
	balancer := l.loadBalancer()[strings.LastIndex(l.loadBalancer(), "/")+1:]
	if want := []string{balancer, balancer + "/backendaddresspools/" + own, balancer}; !slices.Equal(puts, want) {
		l.t.Errorf("written %q, want %q", puts, want)
	}
	policy(corev1.ServiceExternalTrafficPolicyCluster)
	l.eventually("its own pool is gone", func() error {
		if body, ok := l.emulator.Get(l.loadBalancer() + "/backendAddressPools/" + own); ok {
			return fmt.Errorf("is %s", body)
		}
		return nil
	})
}

// poolOf returns the pool of a load balancer rule.
func (l *lab) poolOf(rule string) string {
	l.t.Helper()
	body, _ := l.emulator.Get(l.loadBalancer())
	var got struct {
		Properties struct {
			Rules []struct {
				Name       string
				Properties struct {
					Pool struct{ ID string } `json:"backendAddressPool"`
				}
			} `json:"loadBalancingRules"`
		}
	}
	l.must(json.Unmarshal(body, &got))
	for _, r := range got.Properties.Rules {
		if r.Name == rule {
			return r.Properties.Pool.ID[strings.LastIndex(r.Properties.Pool.ID, "/")+1:]
		}
	}
	return "nowhere"
}

// expectMembers waits until a pool on any load balancer holds these addresses.
func (l *lab) expectMembers(pool string, want ...string) { l.t.Helper(); l.becomes(pool, want...) }

// writes counts the single writes of a pool.
func (l *lab) writes(pool string) int {
	n := 0
	for _, call := range l.emulator.Calls() {
		if call.Method == "PUT" && strings.HasSuffix(strings.ToLower(call.Path), "/backendaddresspools/"+strings.ToLower(pool)) {
			n++
		}
	}
	return n
}

// expectEvents waits until a Service has events with these reasons.
func (l *lab) expectEvents(service string, reasons ...string) {
	l.t.Helper()
	for _, reason := range reasons {
		l.eventually("event "+reason, func() error {
			out, err := l.cluster.kubectl(l.t.Context(), "-n", l.namespace, "get", "events", "--field-selector", "involvedObject.name="+service+",reason="+reason, "-o", "name")
			if err != nil || strings.TrimSpace(out) == "" {
				return fmt.Errorf("none: %w %s", err, out)
			}
			return nil
		})
	}
}
