// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/service"
)

// RejectPorts implements servicelb.Store.
func (store serviceStatusStore) RejectPorts(ctx context.Context, v servicelb.Service, ports map[service.PortRef]string) error {
	s := store.view.ServiceObject(v)
	if _, ok := cache.GatewayOf(s.Name); ok {
		return nil // its status has no ports
	}
	statuses := portStatuses(s.Spec.Ports, ports)
	ours := func(in corev1.LoadBalancerIngress) bool { return slices.ContainsFunc(in.Ports, isWeirError) }
	if statuses == nil && !slices.ContainsFunc(s.Status.LoadBalancer.Ingress, ours) {
		return nil
	}
	next := s.DeepCopy()
	for i := range next.Status.LoadBalancer.Ingress {
		if in := &next.Status.LoadBalancer.Ingress[i]; statuses != nil || ours(*in) {
			in.Ports = statuses
		}
	}
	if equality.Semantic.DeepEqual(s.Status.LoadBalancer, next.Status.LoadBalancer) {
		return nil
	}
	// The patch replaces the ingress list: a stale copy would restore an old address.
	return store.patchStatus(ctx, "status", next, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{}))
}

// portStatuses returns the statuses of all ports, or nil if none has an error.
func portStatuses(ports []corev1.ServicePort, reason map[service.PortRef]string) (statuses []corev1.PortStatus) {
	found := false
	for _, p := range ports {
		status := corev1.PortStatus{Port: p.Port, Protocol: p.Protocol}
		word := cmp.Or(reason[service.PortRef{Port: p.Port, Protocol: string(p.Protocol)}], reason[service.PortRef{Port: p.Port}])
		if word != "" {
			found, status.Error = true, new(portErrorPrefix+word)
		}
		statuses = append(statuses, status)
	}
	if !found {
		return nil
	}
	return statuses
}

// portErrorPrefix is the prefix of Weir's port errors; other errors are not removed.
const portErrorPrefix = "weir.dev/"

func isWeirError(p corev1.PortStatus) bool {
	return p.Error != nil && strings.HasPrefix(*p.Error, portErrorPrefix)
}
