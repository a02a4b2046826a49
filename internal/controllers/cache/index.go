// SPDX-License-Identifier: Apache-2.0

package cache

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Index names and their keys.
const (
	SlicesByService  = "service"  // namespace/name
	ServicesBalanced = "balanced" // "" if Weir manages the load balancer
	ServicesProxied  = "proxied"  // "" for these with a Private Link Service and PROXY protocol
	ServicesByPool   = "pool"     // lower-case name of a possible dedicated pool of these
	// ServicesByAddress is a private address that these request or have.
	ServicesByAddress = "private address"
	// ServicesWithSelector is the namespace of those with a pod selector in the cache.
	ServicesWithSelector = "selector"
	SlicesByNode         = "node"    // name of a node with an endpoint
	NodesByAddress       = "address" // an InternalIP
	NodesByMachine       = "machine" // that of spec.providerID
	PoolsByService       = "service" // namespace/name
	PoolsByTarget        = "target"  // lb.PoolKey
	PoolsOfNodes         = "nodes"   // "" for each pool of nodes
	PoolsByNamespace     = "in"      // namespace
)

// indexOf adapts a function of one type to indexers.
func indexOf[T any](fn func(*T) []string) toolscache.IndexFunc {
	return func(obj any) ([]string, error) {
		if o, ok := obj.(*T); ok {
			return fn(o), nil
		}
		return nil, nil
	}
}

func sliceIndexers() toolscache.Indexers {
	return toolscache.Indexers{
		SlicesByService: indexOf(func(s *discoveryv1.EndpointSlice) []string {
			if name := ServiceOfSlice(s); name.Name != "" {
				return []string{metadata.Key(name.Namespace, name.Name)}
			}
			return nil
		}),
		SlicesByNode: indexOf(nodesWithEndpoints),
	}
}

func (s *Snapshot) serviceIndexers() toolscache.Indexers {
	return toolscache.Indexers{
		ServicesBalanced: indexOf(func(svc *corev1.Service) []string {
			if s.Serving.IsResponsible(svc) {
				return []string{""}
			}
			return nil
		}),
		ServicesProxied: indexOf(func(svc *corev1.Service) []string {
			if s.Serving.IsResponsible(svc) && service.UsesProxyProtocol(svc.Annotations) {
				return []string{""}
			}
			return nil
		}),
		ServicesByAddress: indexOf(func(svc *corev1.Service) []string {
			if !s.Serving.IsResponsible(svc) {
				return nil
			}
			requested, shown := PrivateAddresses(svc)
			return append(requested, shown...)
		}),
		ServicesWithSelector: indexOf(func(svc *corev1.Service) []string {
			if len(svc.Spec.Selector) == 0 {
				return nil
			}
			return []string{svc.Namespace}
		}),
		ServicesByPool: indexOf(func(svc *corev1.Service) []string {
			if !s.Serving.IsResponsible(svc) {
				return nil
			}
			return DedicatedPools(svc)
		}),
	}
}

func nodeIndexers() toolscache.Indexers {
	return toolscache.Indexers{
		NodesByAddress: indexOf(func(n *corev1.Node) []string {
			var keys []string
			for _, ip := range InternalIPs(n) {
				keys = append(keys, ip.String())
			}
			return keys
		}),
		NodesByMachine: indexOf(func(n *corev1.Node) []string {
			if n.Spec.ProviderID == "" {
				return nil
			}
			return []string{lb.MachineKey(n.Spec.ProviderID)}
		}),
	}
}

func poolIndexers(place Placement) toolscache.Indexers {
	return toolscache.Indexers{
		PoolsByService: indexOf(func(p *v1alpha1.BackendPool) []string {
			if p.Spec.ServiceRef == nil {
				return nil
			}
			return []string{metadata.Key(p.Namespace, p.Spec.ServiceRef.Name)}
		}),
		PoolsByTarget: indexOf(func(p *v1alpha1.BackendPool) []string {
			id, err := place.PoolOf(p)
			if err != nil {
				return nil
			}
			return []string{string(id.Key())}
		}),
		PoolsByNamespace: indexOf(func(p *v1alpha1.BackendPool) []string { return []string{p.Namespace} }),
		PoolsOfNodes: indexOf(func(p *v1alpha1.BackendPool) []string {
			if p.Spec.Nodes == nil {
				return nil
			}
			return []string{""}
		}),
	}
}
