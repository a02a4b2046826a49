// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/events"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// deleted is when an object in memory was deleted.
var deleted = metav1.NewTime(time.Unix(0, 0).UTC())

// Offline is a Cluster without an API server: it works on objects in memory, and what it
// writes changes these. What it decides is what a Cluster that runs would.
type Offline struct{ *Cluster }

// NewOffline returns one for load balancers that are rehearsed. Of the options, those of the
// work queues are not used.
func NewOffline(opts Options) *Offline {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	c := &Cluster{
		opts: opts, events: events.New(view.Scheme(), nil, opts.Log),
		snap: &view.Snapshot{
			Placement:           view.Placement{SubscriptionID: opts.SubscriptionID, ResourceGroup: opts.ResourceGroup},
			ExcludeControlPlane: opts.ExcludeControlPlane, Draining: opts.Draining,
		},
	}
	c.connect(nil, services.API{})
	return &Offline{c}
}

// Fill gives the cluster its objects, after Balance.
func (o *Offline) Fill(objects Objects) error {
	o.snap.InMemory()
	all := newMemory(o.snap)
	o.reader, o.writer = all, all
	o.services.Work(services.API{Reader: all, Cached: all, Writer: all})
	var failed []error
	for i := range objects.Slices {
		failed = append(failed, o.snap.Add(&objects.Slices[i]))
	}
	for i := range objects.Services {
		failed = append(failed, o.snap.Add(&objects.Services[i]))
	}
	for i := range objects.Nodes {
		failed = append(failed, o.snap.Add(&objects.Nodes[i]))
	}
	for i := range objects.Pools {
		failed = append(failed, o.snap.Add(&objects.Pools[i]))
	}
	for i := range objects.Namespaces {
		failed = append(failed, o.snap.Add(&objects.Namespaces[i]))
	}
	return errors.Join(failed...)
}

// AllowUnseen is for objects that are not all of a cluster: namespaces may bind everything whose
// Namespace is not among them, and pools whose members they do not tell are left out.
func (o *Offline) AllowUnseen() { o.own.AllowUnseen = true }

// PlaceNodes finds out on which load balancer each node belongs, where there are several.
func (o *Offline) PlaceNodes(ctx context.Context) error {
	if len(o.places.several) == 0 {
		return nil
	}
	nodes := o.snap.Eligible()
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		wait, err := o.placeNode(ctx, n, time.Now())
		if err == nil && wait > 0 {
			err = errors.New("it has no spec.providerID yet, which tells the availability set or scale set: the cloud provider sets it")
		}
		if err != nil {
			return fmt.Errorf("on which load balancer node %s belongs is not known: %w", n.Name, err)
		}
	}
	return o.services.SelectPlaced(ctx)
}

// Settle makes and deletes BackendPools as a Cluster that runs does when a request is done.
func (o *Offline) Settle(ctx context.Context, r balancer.Result) error {
	return o.services.WriteDown(ctx, r)
}

// Desired implements rehearse.Cluster.
func (o *Offline) Desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	return o.pools.Desired(ref)
}

// LoadBalancers implements balancer.Cluster, with the statuses that are in memory.
func (o *Offline) LoadBalancers() balancer.Cluster { return offlineServices{o.services, o} }

type offlineServices struct {
	*services.Reconciler
	o *Offline
}

// Foreign implements balancer.Cluster.
func (s offlineServices) Foreign(ctx context.Context, pool lb.Pool) ([]netip.Addr, error) {
	for _, p := range s.o.snap.PoolsAt(pool.ID.Key()) {
		s.o.own.Statuses.Adopt(p)
	}
	return s.Reconciler.Foreign(ctx, pool)
}

// Objects are those that a Cluster works on.
type Objects struct {
	Services   []corev1.Service
	Nodes      []corev1.Node
	Slices     []discoveryv1.EndpointSlice
	Pools      []v1alpha1.BackendPool
	Namespaces []corev1.Namespace

	// origins are those that come from files, and reading is what is read of these.
	origins []origin
	reading string
}

// ReadObjects reads the objects from an API server. A server that does not know BackendPools
// has none; namespaces are read if they are asked for.
func ReadObjects(ctx context.Context, from client.Reader, namespaces bool) (Objects, error) {
	var (
		services corev1.ServiceList
		nodes    corev1.NodeList
		slcs     discoveryv1.EndpointSliceList
		pools    v1alpha1.BackendPoolList
		spaces   corev1.NamespaceList
	)
	lists := map[string]client.ObjectList{"Services": &services, "Nodes": &nodes, "EndpointSlices": &slcs, "BackendPools": &pools}
	if namespaces {
		lists["Namespaces"] = &spaces
	}
	for what, into := range lists {
		if err := from.List(ctx, into); err != nil && (what != "BackendPools" || !unknownKind(err)) {
			return Objects{}, fmt.Errorf("reading %s: %w", what, err)
		}
	}
	return Objects{Services: services.Items, Nodes: nodes.Items, Slices: slcs.Items, Pools: pools.Items, Namespaces: spaces.Items}, nil
}

// NamespaceOfNodePools is where the BackendPools are that Weir made for nodes, as the
// objects show; otherwise if there are none.
func NamespaceOfNodePools(pools []v1alpha1.BackendPool, otherwise string) string {
	for i := range pools {
		if pools[i].Spec.Nodes != nil && pools[i].Status.MadeFor == v1alpha1.MadeForNodes {
			return pools[i].Namespace
		}
	}
	return otherwise
}
