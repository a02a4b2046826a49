// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
)

const class = "weir.dev/azure"

func balancing() services.Options {
	return services.Options{
		Class: class, Namespace: "default", Guarded: true, Rehearse: balancers.Rehearsal,
		Settings: service.Settings{
			ClusterName: "kubernetes", PublicIPs: lb.ResourceID{SubscriptionID: subscription, ResourceGroup: "rg"},
			VirtualNetwork: vnetID, Subnet: "nodes",
		},
	}
}

// balancers fakes the load balancer deployer of the shared controller.
var balancers = &standIn{}

type standIn struct {
	mu     sync.Mutex
	asked  map[string][]balancer.Request
	answer map[string]func(balancer.Request) balancer.Result
	done   func(balancer.Result)
	given  int
}

func (b *standIn) Run(ctx context.Context) { <-ctx.Done() }

func (b *standIn) ID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: "rg", Name: name}
}

func (b *standIn) LeftToOthers(lb.PoolKey) bool { return false }
func (b *standIn) Names() []string              { return []string{"kubernetes", "kubernetes-internal"} }

func (b *standIn) Leftovers(context.Context) ([]balancer.Leftover, error) { return nil, nil }

func (b *standIn) DeleteUnneeded(context.Context) (balancer.Deleted, error) {
	return balancer.Deleted{}, nil
}

func (b *standIn) Rehearsal() *rehearse.Rehearsal {
	set := balancer.Settings{
		Settings: balancing().Settings, Place: b.ID(""), Location: "eastus", Configurations: []service.Configuration{{Name: "kubernetes"}},
	}
	return rehearse.New(balancer.Config{Settings: set, Cluster: nothing{}}, nothing{})
}

type nothing struct{ balancer.Cluster }

var errNothing = &fault.Fault{Class: fault.Stale, Code: "ResourceNotFound", Err: errors.New("it is not there")}

func (nothing) GetLoadBalancer(context.Context, lb.LoadBalancerID) (lb.LoadBalancer, error) {
	return lb.LoadBalancer{}, errNothing
}
func (nothing) ListLoadBalancers(context.Context, string, string) ([]lb.LoadBalancer, error) {
	return nil, nil
}
func (nothing) ListPublicIPs(context.Context, string, string) ([]lb.PublicIP, error) { return nil, nil }
func (nothing) GetSecurityGroup(context.Context, lb.ResourceID) (lb.SecurityGroup, error) {
	return lb.SecurityGroup{}, errNothing
}
func (nothing) Owners() []string                                           { return nil }
func (nothing) Reached() []balancer.Reached                                { return nil }
func (nothing) Bounds(string) bound.Settings                               { return bound.Settings{} }
func (nothing) Fresh(string, lb.LoadBalancerID, service.Pool) []lb.Address { return nil }

func (nothing) Awaits(string, lb.LoadBalancerID, service.Pool, lb.Pool) bool { return false }
func (nothing) Converts(lb.PoolID) (is, paused bool)                         { return false, false }
func (nothing) Foreign(context.Context, lb.Pool) ([]string, error)           { return nil, nil }
func (nothing) Fills(lb.PoolID) bool                                         { return false }
func (nothing) Binds(lb.PoolID) bool                                         { return false }
func (nothing) Machines(_ context.Context, pool lb.Pool) (lb.Pool, error)    { return pool, nil }

func (b *standIn) NodePlaces(context.Context) (map[string]string, error) { return nil, nil }

func (b *standIn) Locate(_ context.Context, p balancer.Placing) (string, []string, error) {
	if p.Desired == nil {
		return "", p.Recorded, nil
	}
	on := service.LoadBalancerName("kubernetes", p.Desired.Internal)
	leave := slices.DeleteFunc(slices.Clone(p.Recorded), func(name string) bool { return name == on })
	return on, leave, nil
}

func (b *standIn) ReadsLinks(context.Context, string) error { return nil }

func (b *standIn) Reads(_ context.Context, group string) error {
	if group == "mistyped" {
		return &fault.Fault{Class: fault.Terminal, Code: "AuthorizationFailed", Err: errors.New("no right to read it")}
	}
	return nil
}

func (b *standIn) Defer(string, *service.Spec, bool, time.Time) error { return nil }

func (b *standIn) Reject(string, *service.Spec, error) {}

func (b *standIn) Forget(string, string) {}

func (b *standIn) Ensure(req balancer.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked == nil {
		b.asked = map[string][]balancer.Request{}
	}
	b.asked[req.Service] = append(b.asked[req.Service], req)
	answer := b.answer[req.Service]
	if answer == nil {
		answer = b.succeeds
	}
	r := answer(req)
	go b.done(r)
}

// succeeds gives every frontend an address. The caller holds b.mu.
func (b *standIn) succeeds(req balancer.Request) balancer.Result {
	r := balancer.Result{Request: req, Changed: true}
	if req.Desired != nil {
		r.Pools = req.Desired.Pools
		for _, f := range req.Desired.Frontends {
			ip := netip.AddrFrom4([4]byte{20, 0, byte(b.given >> 8), byte(b.given)})
			if f.Frontend.Family == lb.IPv6 {
				ip = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(b.given >> 8), 15: byte(b.given)})
			}
			r.Addresses = append(r.Addresses, ip)
			b.given++
		}
	}
	return r
}

// answers sets the result of a Service's requests; nil is success.
func (b *standIn) answers(service string, answer func(balancer.Request) balancer.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answer == nil {
		b.answer = map[string]func(balancer.Request) balancer.Result{}
	}
	b.answer[service] = answer
}

func (b *standIn) requests(service string) []balancer.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked[service])
}

func (s *scene) wants(name string, edits ...func(*corev1.Service)) {
	s.Helper()
	s.azureHas(name)
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Annotations: map[string]string{}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class),
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	for _, edit := range edits {
		edit(svc)
	}
	s.create(svc)
}

func (s *scene) edits(name string, edit func(*corev1.Service)) {
	s.Helper()
	change(s, s.ns, name, edit)
}

var twins sync.Once

// azureHas creates a Service's own pools in Azure. Without them, the load balancer would be
// requested again.
func (s *scene) azureHas(service string) { s.azureHasPools(s.ns+"-"+service, s.ns+"-"+service+"-ipv6") }

func (s *scene) azureHasPools(names ...string) {
	s.Helper()
	balancers := []string{network + "/loadBalancers/kubernetes", network + "/loadBalancers/kubernetes-internal"}
	twins.Do(func() {
		for _, id := range balancers {
			s.put(id, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"theirs"}]}}`)
		}
	})
	for _, id := range balancers {
		for _, name := range names {
			s.put(id+"/backendAddressPools/"+name, fmt.Sprintf(`{"name":%q,"properties":{"virtualNetwork":{"id":%q}}}`, name, vnetID))
		}
	}
}

func (s *scene) balanced(name string, addresses int) *corev1.Service {
	s.Helper()
	var svc *corev1.Service
	s.until(func() string {
		svc = get[corev1.Service](s, s.ns, name)
		if got := svc.Status.LoadBalancer.Ingress; len(got) != addresses {
			return fmt.Sprintf("Service %s shows %v, want %d addresses; events %v", name, got, addresses, s.events("Service", name))
		}
		return ""
	})
	return svc
}

func (s *scene) asked(name string, times int) []balancer.Request {
	s.Helper()
	var all []balancer.Request
	s.until(func() string {
		if all = balancers.requests(s.ns + "/" + name); len(all) != times {
			return fmt.Sprintf("%d requests for %s, want %d", len(all), name, times)
		}
		return ""
	})
	return all
}

func (s *scene) madePools() string {
	s.Helper()
	var list backendPools
	if err := api.List(s.Context(), &list, inNamespace(s.ns), matching(labels.Set{"app.kubernetes.io/managed-by": "weir"})); err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, fmt.Sprintf("%s (%s %s %s)", p.Name, p.Spec.LoadBalancer.Name, p.Spec.PoolName, p.Spec.IPFamily))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
