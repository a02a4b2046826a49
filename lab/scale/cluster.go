// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/config/crd"
	"weir.dev/weir/internal/service"
)

const (
	namespace = "scale"
	// Weir creates no load balancers for this class: the pools exist.
	foreignClass = "example.com/other"
	// limits concurrent requests
	maxConcurrent = 16
)

// labCluster is not safe for concurrent use.
type labCluster struct {
	api  client.Client
	opts Options
	// endpointNodes holds the nodes of each Service's endpoints; generation counts changes.
	endpointNodes [][]int
	generation    []int
	excluded      map[int]bool
}

func newCluster(kubeconfig string, o Options) (*labCluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no client-side rate limit
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c := newLayout(o)
	c.api, err = client.New(config, client.Options{Scheme: scheme})
	return c, err
}

func newLayout(o Options) *labCluster {
	c := &labCluster{opts: o, endpointNodes: make([][]int, o.Services), generation: make([]int, o.Services), excluded: map[int]bool{}}
	for s := range c.endpointNodes {
		for e := range endpoints { // evenly
			c.endpointNodes[s] = append(c.endpointNodes[s], (s*7+e*(o.Nodes/endpoints))%o.Nodes)
		}
	}
	return c
}

func (c *labCluster) createObjects(ctx context.Context, printf func(string, ...any)) error {
	if err := c.installCRDs(ctx); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Annotations: map[string]string{service.LoadBalancersAnnotation: "*"}}}
	if err := c.api.Create(ctx, ns); err != nil {
		return err
	}
	const chunk = 1000
	for from := 0; from < c.opts.Services; from += chunk {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(maxConcurrent)
		for s := from; s < min(from+chunk, c.opts.Services); s++ {
			group.Go(func() error {
				return errors.Join(c.api.Create(ctx, newService(s)), c.api.Create(ctx, c.newSlice(s)), c.api.Create(ctx, newPool(s, c.opts)))
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		printf("  %d of %d", min(from+chunk, c.opts.Services), c.opts.Services)
	}
	return nil
}

func (c *labCluster) installCRDs(ctx context.Context) error {
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := crd.Files.ReadFile(file)
		if err != nil {
			return err
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &definition.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := c.api.Create(ctx, definition); err != nil {
			return fmt.Errorf("creating %s: %w", definition.GetName(), err)
		}
	}
	for c.api.List(ctx, &v1alpha1.BackendPoolList{}) != nil { // not served yet
		if err := sleepContext(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// newService has no selector, so the cluster does not manage its endpoints, and no node ports:
// there are too few.
func newService(s int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceName(s)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(foreignClass), AllocateLoadBalancerNodePorts: new(false),
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
}

func newPool(s int, o Options) *v1alpha1.BackendPool {
	return &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceName(s)},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef:   &v1alpha1.ServiceReference{Name: serviceName(s)},
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: loadBalancerName(s % o.LoadBalancers)}, PoolName: serviceName(s), IPFamily: string(corev1.IPv4Protocol),
		},
	}
}

func (c *labCluster) newSlice(s int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: serviceName(s),
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName(s), discoveryv1.LabelManagedBy: "scale.weir.dev"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for e, node := range c.endpointNodes[s] {
		ip := netip.AddrFrom4([4]byte{10, 244, byte((s*endpoints + e + c.generation[s]) >> 8), byte(s*endpoints + e + c.generation[s])})
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{ip.String()}, NodeName: new(nodeName(node)),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		})
	}
	return slice
}

// nodeName counts from 0, kubelab from 1.
func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

// touchService changes endpoint addresses, but no nodes.
func (c *labCluster) touchService(ctx context.Context, s int) error {
	c.generation[s]++
	return c.api.Update(ctx, c.newSlice(s))
}

func (c *labCluster) moveEndpoint(ctx context.Context, s int) error {
	c.generation[s]++
	next := c.endpointNodes[s][0]
	for slices.Contains(c.endpointNodes[s], next) || c.excluded[next] {
		next = (next + 1) % c.opts.Nodes
	}
	c.endpointNodes[s][0] = next
	return c.api.Update(ctx, c.newSlice(s))
}

func (c *labCluster) excludeNode(ctx context.Context, node int) error {
	c.excluded[node] = true
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(node)}}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, corev1.LabelNodeExcludeBalancers)
	return c.api.Patch(ctx, n, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

const downSuffix = "/Down"

// desiredPools returns the desired members of each pool, sorted. An excluded node is Down while it serves. The node
// addresses are kubelab's.
func (c *labCluster) desiredPools() map[string]string {
	pools := map[string]string{}
	for s, nodes := range c.endpointNodes {
		var ips []string
		for _, n := range nodes {
			host := n + 4
			ip := netip.AddrFrom4([4]byte{10, 224, byte(host >> 8), byte(host)}).String()
			if c.excluded[n] {
				ip += downSuffix
			}
			ips = append(ips, ip)
		}
		slices.Sort(ips)
		pools[serviceName(s)] = strings.Join(ips, " ")
	}
	return pools
}
