// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/servicelb"
)

// Story describes one Service, BackendPool or node.
type Story struct {
	At time.Time `json:"at"`
	// Service is nil if the pool has none or it does not exist.
	Service *Service `json:"service,omitempty"`
	Node    *Node    `json:"node,omitempty"`
	Pools   []Pool   `json:"backendPools"`
	// NodesUnseen is set if the caller may not list Nodes; then only recorded members are known.
	NodesUnseen bool `json:"nodesUnseen,omitempty"`
	// Events are the latest, oldest first.
	Events []Event `json:"events"`
}

// Event is an event of one of the objects.
type Event struct {
	At      time.Time `json:"at"`
	Count   int32     `json:"count"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

const eventsShown = 20

// Reader reads from the API server.
type Reader struct {
	API client.Reader
	Now time.Time
}

// OfService describes a Service.
func (r Reader) OfService(ctx context.Context, namespace, name string) (Story, error) {
	var s corev1.Service
	if err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		return Story{}, err
	}
	pools, err := r.pools(ctx, namespace)
	if err != nil {
		return Story{}, err
	}
	places := servicelb.Names(s.Annotations[view.PlaceAnnotation])
	pools = slices.DeleteFunc(pools, func(p v1alpha1.BackendPool) bool {
		if p.Spec.ServiceRef != nil {
			return p.Namespace != namespace || p.Spec.ServiceRef.Name != name
		}
		return p.Status.MadeFor != v1alpha1.MadeForNodes || !view.ContainsFold(places, p.Spec.LoadBalancer.Name)
	})
	return r.story(ctx, &s, pools)
}

// OfPool describes a BackendPool.
func (r Reader) OfPool(ctx context.Context, namespace, name string) (Story, error) {
	var p v1alpha1.BackendPool
	if err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
		return Story{}, err
	}
	if p.Spec.ServiceRef == nil {
		return r.story(ctx, nil, []v1alpha1.BackendPool{p})
	}
	var s corev1.Service
	err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.Spec.ServiceRef.Name}, &s)
	if apierrors.IsNotFound(err) {
		return r.story(ctx, nil, []v1alpha1.BackendPool{p})
	}
	if err != nil {
		return Story{}, err
	}
	return r.story(ctx, &s, []v1alpha1.BackendPool{p})
}

// OfNode describes a node and the pools that contain it.
func (r Reader) OfNode(ctx context.Context, name string) (Story, error) {
	var n corev1.Node
	if err := r.API.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return Story{}, err
	}
	pools, err := r.pools(ctx, "")
	if err != nil {
		return Story{}, err
	}
	node := nodeOf(&n)
	story := Story{At: r.Now, Node: &node}
	var nodes corev1.NodeList
	err = r.API.List(ctx, &nodes)
	if story.NodesUnseen = apierrors.IsForbidden(err); err != nil && !story.NodesUnseen {
		return Story{}, fmt.Errorf("reading Nodes: %w", err)
	}
	node.Duplicates = duplicatesOf(&n, nodes.Items, slices.ContainsFunc(pools, selectsPlaced))
	for i := range pools {
		if m, is := memberOf(&pools[i], &n); is {
			p := poolOf(&pools[i])
			p.Members = []Member{m}
			story.Pools = append(story.Pools, p)
		}
	}
	return story, r.events(ctx, &story)
}

// pools falls back to one namespace if the caller may not list all.
func (r Reader) pools(ctx context.Context, namespace string) ([]v1alpha1.BackendPool, error) {
	var list v1alpha1.BackendPoolList
	err := r.API.List(ctx, &list)
	if apierrors.IsForbidden(err) && namespace != "" {
		err = r.API.List(ctx, &list, client.InNamespace(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("reading BackendPools: %w", err)
	}
	return list.Items, nil
}

func (r Reader) story(ctx context.Context, s *corev1.Service, pools []v1alpha1.BackendPool) (Story, error) {
	story := Story{At: r.Now}
	var slcs discoveryv1.EndpointSliceList
	if s != nil {
		service := serviceOf(s)
		story.Service = &service
		if err := r.API.List(ctx, &slcs, client.InNamespace(s.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: s.Name}); err != nil {
			return Story{}, fmt.Errorf("reading EndpointSlices: %w", err)
		}
	}
	var nodes corev1.NodeList
	err := r.API.List(ctx, &nodes)
	if story.NodesUnseen = apierrors.IsForbidden(err); err != nil && !story.NodesUnseen {
		return Story{}, fmt.Errorf("reading Nodes: %w", err)
	}
	for i := range pools {
		p := poolOf(&pools[i])
		if p.Members = onRecord(&pools[i]); !story.NodesUnseen {
			p.Members = members(&pools[i], slcs.Items, nodes.Items, r.Now)
		}
		story.Pools = append(story.Pools, p)
	}
	return story, r.events(ctx, &story)
}

func (r Reader) events(ctx context.Context, story *Story) error {
	var found []Event
	of := func(kind, namespace, name string) error {
		var list corev1.EventList
		where := client.InNamespace(namespace)
		if kind == "Node" {
			where = client.InNamespace(corev1.NamespaceDefault)
		}
		if err := r.API.List(ctx, &list, where, client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}); err != nil {
			return fmt.Errorf("reading Events: %w", err)
		}
		for i := range list.Items {
			found = append(found, eventOf(&list.Items[i]))
		}
		return nil
	}
	if story.Service != nil {
		if err := of("Service", story.Service.Namespace, story.Service.Name); err != nil {
			return err
		}
	}
	if story.Node != nil {
		if err := of("Node", "", story.Node.Name); err != nil {
			return err
		}
	}
	for _, p := range story.Pools {
		if story.Node != nil {
			break // events of its pools are not about the node
		}
		if err := of("BackendPool", p.Namespace, p.Name); err != nil {
			return err
		}
	}
	slices.SortStableFunc(found, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Reason, b.Reason)) })
	story.Events = found[max(0, len(found)-eventsShown):]
	return nil
}

func eventOf(e *corev1.Event) Event {
	at, count := e.LastTimestamp.Time, e.Count
	if at.IsZero() {
		at = e.EventTime.Time
	}
	if e.Series != nil {
		at, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	return Event{At: at, Count: max(1, count), Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Type: e.Type, Reason: e.Reason, Message: e.Message}
}
