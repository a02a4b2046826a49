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
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

// Explanation describes one Service, Gateway, BackendPool or node.
type Explanation struct {
	At time.Time `json:"at"`
	// Service is nil if the pool has none or it does not exist.
	Service *Service `json:"service,omitempty"`
	Gateway *Gateway `json:"gateway,omitempty"`
	Node    *Node    `json:"node,omitempty"`
	Pools   []Pool   `json:"backendPools"`
	// NodesUnseen is set if the caller may not list Nodes; then only recorded members are known.
	NodesUnseen bool `json:"nodesUnseen,omitempty"`
	// HealthError is why Azure's health of members was not read, or not of all pools; empty if it was not requested.
	HealthError string `json:"healthError,omitempty"`
	// Events are the latest, oldest first.
	Events []Event `json:"events"`

	isColored bool // text only
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

const maxEvents = 20

// Reader reads from the API server.
type Reader struct {
	API client.Reader
	Now time.Time
	// Health returns what Azure's probes report of the members of a BackendPool, by address; nil does not read it.
	Health func(ctx context.Context, namespace, pool string) (map[string]string, error)
}

// ExplainService describes a Service.
func (r Reader) ExplainService(ctx context.Context, namespace, name string) (Explanation, error) {
	var s corev1.Service
	if err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		return Explanation{}, err
	}
	pools, err := r.listPools(ctx, namespace)
	if err != nil {
		return Explanation{}, err
	}
	places := servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation])
	pools = slices.DeleteFunc(pools, func(p v1alpha1.BackendPool) bool {
		if p.Spec.ServiceRef != nil {
			return p.Namespace != namespace || p.Spec.ServiceRef.Name != name
		}
		return p.Status.MadeFor != v1alpha1.MadeForNodes || !cache.ContainsFold(places, p.Spec.LoadBalancer.Name)
	})
	return r.newExplanation(ctx, &s, pools)
}

// ExplainPool describes a BackendPool.
func (r Reader) ExplainPool(ctx context.Context, namespace, name string) (Explanation, error) {
	var p v1alpha1.BackendPool
	if err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
		return Explanation{}, err
	}
	if p.Spec.ServiceRef == nil {
		return r.newExplanation(ctx, nil, []v1alpha1.BackendPool{p})
	}
	var s corev1.Service
	err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.Spec.ServiceRef.Name}, &s)
	if apierrors.IsNotFound(err) {
		return r.newExplanation(ctx, nil, []v1alpha1.BackendPool{p})
	}
	if err != nil {
		return Explanation{}, err
	}
	return r.newExplanation(ctx, &s, []v1alpha1.BackendPool{p})
}

// ExplainNode describes a node and the pools that contain it.
func (r Reader) ExplainNode(ctx context.Context, name string) (Explanation, error) {
	var n corev1.Node
	if err := r.API.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return Explanation{}, err
	}
	pools, err := r.listPools(ctx, "")
	if err != nil {
		return Explanation{}, err
	}
	node := newNode(&n)
	explanation := Explanation{At: r.Now, Node: &node}
	var nodes corev1.NodeList
	err = r.API.List(ctx, &nodes)
	if explanation.NodesUnseen = apierrors.IsForbidden(err); err != nil && !explanation.NodesUnseen {
		return Explanation{}, fmt.Errorf("reading Nodes: %w", err)
	}
	node.Duplicates = duplicatesOf(&n, nodes.Items, slices.ContainsFunc(pools, selectsPlaced))
	selects := false
	for i := range pools {
		m, ok := findMember(&pools[i], &n)
		if !ok && node.Excluded == "" && pools[i].Spec.Nodes != nil {
			m, ok = findSelected(memberStates(&pools[i], nil, nodes.Items, r.Now), n.Name)
			selects = selects || matchesSelector(pools[i].Spec.Nodes.Selector, n.Labels)
		}
		if ok {
			p := newPool(&pools[i], r.Now)
			p.Members = []Member{m}
			explanation.Pools = append(explanation.Pools, p)
		}
	}
	if len(explanation.Pools) == 0 {
		node.Poolless = poollessReason(pools, selects, explanation.NodesUnseen)
	}
	r.addHealth(ctx, &explanation)
	return explanation, r.addEvents(ctx, &explanation)
}

// listPools falls back to one namespace if the caller may not list all.
func (r Reader) listPools(ctx context.Context, namespace string) ([]v1alpha1.BackendPool, error) {
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

func (r Reader) newExplanation(ctx context.Context, s *corev1.Service, pools []v1alpha1.BackendPool) (Explanation, error) {
	explanation := Explanation{At: r.Now}
	var slcs discoveryv1.EndpointSliceList
	if s != nil {
		service := newService(s)
		if err := r.addServing(ctx, s, pools, &service); err != nil {
			return Explanation{}, err
		}
		explanation.Service = &service
		if err := r.API.List(ctx, &slcs, client.InNamespace(s.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: s.Name}); err != nil {
			return Explanation{}, fmt.Errorf("reading EndpointSlices: %w", err)
		}
	}
	return r.addPools(ctx, explanation, pools, slcs.Items)
}

// addPools adds pools with their members, and events. slcs are those of the Service.
func (r Reader) addPools(ctx context.Context, explanation Explanation, pools []v1alpha1.BackendPool, slcs []discoveryv1.EndpointSlice) (Explanation, error) {
	var nodes corev1.NodeList
	err := r.API.List(ctx, &nodes)
	if explanation.NodesUnseen = apierrors.IsForbidden(err); err != nil && !explanation.NodesUnseen {
		return Explanation{}, fmt.Errorf("reading Nodes: %w", err)
	}
	for i := range pools {
		p := newPool(&pools[i], r.Now)
		if p.Members = recordedMembers(&pools[i]); !explanation.NodesUnseen {
			p.Members = memberStates(&pools[i], slcs, nodes.Items, r.Now)
		}
		explanation.Pools = append(explanation.Pools, p)
	}
	r.addHealth(ctx, &explanation)
	return explanation, r.addEvents(ctx, &explanation)
}

func (r Reader) addEvents(ctx context.Context, explanation *Explanation) error {
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
			found = append(found, newEvent(&list.Items[i]))
		}
		return nil
	}
	if explanation.Service != nil {
		if err := of("Service", explanation.Service.Namespace, explanation.Service.Name); err != nil {
			return err
		}
	}
	if explanation.Gateway != nil {
		if err := of("Gateway", explanation.Gateway.Namespace, explanation.Gateway.Name); err != nil {
			return err
		}
	}
	if explanation.Node != nil {
		if err := of("Node", "", explanation.Node.Name); err != nil {
			return err
		}
	}
	for _, p := range explanation.Pools {
		if explanation.Node != nil {
			break // events of its pools are not about the node
		}
		if err := of("BackendPool", p.Namespace, p.Name); err != nil {
			return err
		}
	}
	slices.SortStableFunc(found, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Reason, b.Reason)) })
	explanation.Events = found[max(0, len(found)-maxEvents):]
	return nil
}

func newEvent(e *corev1.Event) Event {
	at, count := e.LastTimestamp.Time, e.Count
	if at.IsZero() {
		at = e.EventTime.Time
	}
	if e.Series != nil {
		at, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	return Event{At: at, Count: max(1, count), Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Type: e.Type, Reason: e.Reason, Message: e.Message}
}
