// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
)

// Names of the indexes.
const (
	slicesByService  = "service"  // namespace/name
	servicesBalanced = "balanced" // "" for each that has a load balancer of Weir's
	servicesByPool   = "pool"     // lower-case name of a pool that each of these may have for itself
	slicesByNode     = "node"     // name of a node that hosts an endpoint
	nodesByAddress   = "address"  // an InternalIP
	nodesByMachine   = "machine"  // that of spec.providerID
	poolsByService   = "service"  // namespace/name
	poolsByTarget    = "target"   // lb.PoolKey
	poolsOfNodes     = "nodes"    // "" for each pool of nodes
	poolsByNamespace = "in"       // namespace
)

// indexOf adapts a function on one kind to the informers' indexers.
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
		slicesByService: indexOf(func(s *discoveryv1.EndpointSlice) []string {
			if name := serviceOfSlice(s); name.Name != "" {
				return []string{key(name.Namespace, name.Name)}
			}
			return nil
		}),
		slicesByNode: indexOf(func(s *discoveryv1.EndpointSlice) []string {
			seen := map[string]struct{}{}
			var names []string
			for _, e := range s.Endpoints {
				if e.NodeName == nil {
					continue
				}
				if _, ok := seen[*e.NodeName]; !ok {
					seen[*e.NodeName] = struct{}{}
					names = append(names, *e.NodeName)
				}
			}
			return names
		}),
	}
}

func (c *Cluster) serviceIndexers() toolscache.Indexers {
	return toolscache.Indexers{
		servicesBalanced: indexOf(func(s *corev1.Service) []string {
			if c.ours(s) || c.held(s) {
				return []string{""}
			}
			return nil
		}),
		servicesByPool: indexOf(func(s *corev1.Service) []string {
			if !c.ours(s) && !c.held(s) {
				return nil
			}
			return c.ownPools(s)
		}),
	}
}

func nodeIndexers() toolscache.Indexers {
	return toolscache.Indexers{
		nodesByAddress: indexOf(func(n *corev1.Node) []string {
			var keys []string
			for _, ip := range internalIPs(n) {
				keys = append(keys, ip.String())
			}
			return keys
		}),
		nodesByMachine: indexOf(func(n *corev1.Node) []string {
			if n.Spec.ProviderID == "" {
				return nil
			}
			return []string{lb.MachineKey(n.Spec.ProviderID)}
		}),
	}
}

func poolIndexers(place placement) toolscache.Indexers {
	return toolscache.Indexers{
		poolsByService: indexOf(func(p *v1alpha1.BackendPool) []string {
			if p.Spec.ServiceRef == nil {
				return nil
			}
			return []string{key(p.Namespace, p.Spec.ServiceRef.Name)}
		}),
		poolsByTarget: indexOf(func(p *v1alpha1.BackendPool) []string {
			id, err := place.of(p)
			if err != nil {
				return nil
			}
			return []string{string(id.Key())}
		}),
		poolsByNamespace: indexOf(func(p *v1alpha1.BackendPool) []string { return []string{p.Namespace} }),
		poolsOfNodes: indexOf(func(p *v1alpha1.BackendPool) []string {
			if p.Spec.Nodes == nil {
				return nil
			}
			return []string{""}
		}),
	}
}

func key(namespace, name string) string { return namespace + "/" + name }
