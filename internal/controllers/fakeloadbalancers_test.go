// SPDX-License-Identifier: Apache-2.0

package controllers_test

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

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/service"
)

const class = "weir.dev/azure"

func loadBalancerOptions() services.Options {
	return services.Options{
		Class: class, Namespace: "default", Guarded: true, NewDryRun: deployer.Rehearsal,
		Settings: service.Settings{
			SeveralLoadBalancers: true, // Local Services have pools of their own
			ClusterName:          "kubernetes", PublicIPs: lb.ResourceID{SubscriptionID: subscription, ResourceGroup: "rg"},
			VirtualNetwork: vnetID, Subnet: "nodes",
		},
	}
}

// deployer fakes the load balancer deployer of the shared controller.
var deployer = &fakeDeployer{}

type fakeDeployer struct {
	mu     sync.Mutex
	asked  map[string][]loadbalancer.Request
	answer map[string]func(loadbalancer.Request) loadbalancer.Result
	done   func(loadbalancer.Result)
	given  int
}

func (d *fakeDeployer) Run(ctx context.Context) { <-ctx.Done() }

func (d *fakeDeployer) ID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: "rg", Name: name}
}

func (d *fakeDeployer) LeftToOthers(lb.PoolKey) bool       { return false }
func (d *fakeDeployer) HealthPort(lb.PoolID) (int32, bool) { return 0, true }
func (d *fakeDeployer) Names() []string                    { return []string{"kubernetes", "kubernetes-internal"} }

func (d *fakeDeployer) ListOrphans(context.Context) ([]loadbalancer.Orphan, error) { return nil, nil }

func (d *fakeDeployer) CleanUp(context.Context) (loadbalancer.CleanupResult, error) {
	return loadbalancer.CleanupResult{}, nil
}

func (d *fakeDeployer) Rehearsal() *dryrun.Simulator {
	set := loadbalancer.Settings{
		Settings: loadBalancerOptions().Settings, Place: d.ID(""), Location: "eastus", Configurations: []service.Configuration{{Name: "kubernetes"}},
	}
	return dryrun.New(loadbalancer.Config{Settings: set, Cluster: emptyAzure{}}, emptyAzure{})
}

type emptyAzure struct{ loadbalancer.Cluster }

var errNothing = &armerror.Fault{Class: armerror.Stale, Code: "ResourceNotFound", Err: errors.New("it is not there")}

func (emptyAzure) GetLoadBalancer(context.Context, lb.LoadBalancerID) (lb.LoadBalancer, error) {
	return lb.LoadBalancer{}, errNothing
}
func (emptyAzure) ListLoadBalancers(context.Context, string, string) ([]lb.LoadBalancer, error) {
	return nil, nil
}
func (emptyAzure) ListPublicIPs(context.Context, string, string) ([]lb.PublicIP, error) {
	return nil, nil
}
func (emptyAzure) GetSecurityGroup(context.Context, lb.ResourceID) (lb.SecurityGroup, error) {
	return lb.SecurityGroup{}, errNothing
}
func (emptyAzure) ServiceOwners() []string                        { return nil }
func (emptyAzure) ExposedServices() []loadbalancer.ExposedService { return nil }
func (emptyAzure) NamespaceBounds(string) service.NamespaceSettings {
	return service.NamespaceSettings{}
}

func (emptyAzure) NeedsMembers(string, lb.LoadBalancerID, service.Pool, lb.Pool) bool { return false }
func (emptyAzure) ConversionState(lb.PoolID) (converting, paused bool)                { return false, false }
func (emptyAzure) MemberKind(lb.PoolID) service.MemberKind                            { return service.UnknownMembers }
func (emptyAzure) ForeignMembers(context.Context, lb.Pool) ([]string, error)          { return nil, nil }
func (emptyAzure) HasManagedPool(lb.PoolID) bool                                      { return false }
func (emptyAzure) HasBackendPool(lb.PoolID) bool                                      { return false }
func (emptyAzure) ResolveMachines(_ context.Context, pool lb.Pool) (lb.Pool, error)   { return pool, nil }

func (d *fakeDeployer) NodeConfigurations(context.Context) (map[string]string, error) {
	return nil, nil
}

func (d *fakeDeployer) FindPlacement(_ context.Context, p loadbalancer.PlacementRequest) (string, []string, error) {
	if p.Desired == nil {
		return "", p.LoadBalancers, nil
	}
	on := service.LoadBalancerName("kubernetes", p.Desired.Internal)
	leave := slices.DeleteFunc(slices.Clone(p.LoadBalancers), func(name string) bool { return name == on })
	return on, leave, nil
}

func (d *fakeDeployer) CheckLinksReadable(context.Context, string) error { return nil }

func (d *fakeDeployer) CheckReadable(_ context.Context, group string) error {
	if group == "mistyped" {
		return &armerror.Fault{Class: armerror.Terminal, Code: "AuthorizationFailed", Err: errors.New("no right to read it")}
	}
	return nil
}

func (d *fakeDeployer) CheckDeferred(string, *service.Spec, string, bool, time.Time) error {
	return nil
}

func (d *fakeDeployer) RecordRejection(string, *service.Spec, string, error) {}

func (d *fakeDeployer) ForgetService(string, string) {}

func (d *fakeDeployer) EnsureLoadBalancer(req loadbalancer.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked == nil {
		d.asked = map[string][]loadbalancer.Request{}
	}
	d.asked[req.Service] = append(d.asked[req.Service], req)
	answer := d.answer[req.Service]
	if answer == nil {
		answer = d.successResult
	}
	r := answer(req)
	go d.done(r)
}

// successResult gives every frontend an address. The caller holds d.mu.
func (d *fakeDeployer) successResult(req loadbalancer.Request) loadbalancer.Result {
	r := loadbalancer.Result{Request: req, Changed: true}
	if req.Desired != nil {
		r.Pools = req.Desired.Pools
		for _, f := range req.Desired.Frontends {
			ip := netip.AddrFrom4([4]byte{20, 0, byte(d.given >> 8), byte(d.given)})
			if f.Frontend.Family == lb.IPv6 {
				ip = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(d.given >> 8), 15: byte(d.given)})
			}
			r.Addresses = append(r.Addresses, ip)
			d.given++
		}
	}
	return r
}

// setResult sets the result of a Service's requests; nil is success.
func (d *fakeDeployer) setResult(service string, answer func(loadbalancer.Request) loadbalancer.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answer == nil {
		d.answer = map[string]func(loadbalancer.Request) loadbalancer.Result{}
	}
	d.answer[service] = answer
}

func (d *fakeDeployer) requests(service string) []loadbalancer.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked[service])
}

func (env *testEnv) createLoadBalanced(name string, edits ...func(*corev1.Service)) {
	env.Helper()
	env.createOwnPools(name)
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: name, Annotations: map[string]string{}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class),
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	for _, edit := range edits {
		edit(svc)
	}
	env.create(svc)
}

func (env *testEnv) editService(name string, edit func(*corev1.Service)) {
	env.Helper()
	change(env, env.ns, name, edit)
}

var twins sync.Once

// createOwnPools creates a Service's own pools in Azure. Without them, the load balancer would be
// requested again.
func (env *testEnv) createOwnPools(service string) {
	env.createPools(env.ns+"-"+service, env.ns+"-"+service+"-ipv6")
}

func (env *testEnv) createPools(names ...string) {
	env.Helper()
	balancers := []string{network + "/loadBalancers/kubernetes", network + "/loadBalancers/kubernetes-internal"}
	twins.Do(func() {
		for _, id := range balancers {
			env.put(id, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"theirs"}]}}`)
		}
	})
	for _, id := range balancers {
		for _, name := range names {
			env.put(id+"/backendAddressPools/"+name, fmt.Sprintf(`{"name":%q,"properties":{"virtualNetwork":{"id":%q}}}`, name, vnetID))
		}
	}
}

func (env *testEnv) waitForAddresses(name string, addresses int) *corev1.Service {
	env.Helper()
	var svc *corev1.Service
	env.waitUntil(func() string {
		svc = get[corev1.Service](env, env.ns, name)
		if got := svc.Status.LoadBalancer.Ingress; len(got) != addresses {
			return fmt.Sprintf("Service %s shows %v, want %d addresses; events %v", name, got, addresses, env.countEvents("Service", name))
		}
		return ""
	})
	return svc
}

// waitForRequests waits for a number of requests that deploy or remove a Service, and returns them.
func (env *testEnv) waitForRequests(name string, times int) []loadbalancer.Request {
	env.Helper()
	var requests []loadbalancer.Request
	env.waitUntil(func() string {
		requests = slices.DeleteFunc(deployer.requests(env.ns+"/"+name), func(req loadbalancer.Request) bool { return req.CloseOnly })
		if len(requests) != times {
			return fmt.Sprintf("%d requests for %s, want %d", len(requests), name, times)
		}
		return ""
	})
	return requests
}

// waitForClosing waits for a request that closes the security group, and fails if it is not the second one: it
// precedes whatever else an edit changes.
func (env *testEnv) waitForClosing(name string) {
	env.Helper()
	env.waitUntil(func() string {
		if requests := deployer.requests(env.ns + "/" + name); len(requests) < 2 || !requests[1].CloseOnly {
			return fmt.Sprintf("%d requests for %s, and the second one closes nothing", len(requests), name)
		}
		return ""
	})
}

func (env *testEnv) managedPools() string {
	env.Helper()
	var list backendPools
	if err := api.List(env.Context(), &list, inNamespace(env.ns), matching(labels.Set{"app.kubernetes.io/managed-by": "weir"})); err != nil {
		env.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, fmt.Sprintf("%s (%s %s %s)", p.Name, p.Spec.LoadBalancer.Name, p.Spec.PoolName, p.Spec.IPFamily))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
