// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// Objects are the objects of a Cluster.
type Objects struct {
	Services   []corev1.Service
	Nodes      []corev1.Node
	Slices     []discoveryv1.EndpointSlice
	Pools      []v1alpha1.BackendPool
	Namespaces []corev1.Namespace
	// Gateways are objects of Gateway API.
	Gateways []client.Object
	// InvalidGateways are those of them with an error.
	InvalidGateways []InvalidGateway

	sources []objectSource
	// currentDocument is the document being read.
	currentDocument string
}

// ReadObjects reads the objects from an API server, which may not know BackendPools.
func ReadObjects(ctx context.Context, from client.Reader, namespaces bool) (Objects, error) {
	var (
		services corev1.ServiceList
		nodes    corev1.NodeList
		slcs     discoveryv1.EndpointSliceList
		pools    v1alpha1.BackendPoolList
		spaces   corev1.NamespaceList
	)
	unknown := func(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }
	lists := map[string]client.ObjectList{"Services": &services, "Nodes": &nodes, "EndpointSlices": &slcs, "BackendPools": &pools}
	if namespaces {
		lists["Namespaces"] = &spaces
	}
	for kind, into := range lists {
		if err := from.List(ctx, into); err != nil && (kind != "BackendPools" || !unknown(err)) {
			return Objects{}, fmt.Errorf("reading %s: %w", kind, err)
		}
	}
	return Objects{Services: services.Items, Nodes: nodes.Items, Slices: slcs.Items, Pools: pools.Items, Namespaces: spaces.Items}, nil
}

// NamespaceOfNodePools returns the namespace of the node pools' BackendPools, or otherwise if there
// are none.
func NamespaceOfNodePools(pools []v1alpha1.BackendPool, otherwise string) string {
	for i := range pools {
		if pools[i].Spec.Nodes != nil && pools[i].Status.MadeFor == v1alpha1.MadeForNodes {
			return pools[i].Namespace
		}
	}
	return otherwise
}
