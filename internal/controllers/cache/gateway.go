// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"weir.dev/weir/internal/service"
)

// GatewayServiceName returns the name under which a Gateway is in Snapshot.Services.
func GatewayServiceName(gateway string) string { return service.GatewayServiceName(gateway) }

// GatewayOf returns the Gateway that a name in Snapshot.Services denotes; false if the name is that of a Service.
func GatewayOf(name string) (gateway string, ok bool) { return service.GatewayOf(name) }

// IsGatewayKey reports whether namespace/name in Snapshot.Services is a Gateway.
func IsGatewayKey(key string) bool {
	_, ok := GatewayOf(NamespacedName(key).Name)
	return ok
}

// AddGateways adds a store to Services and returns it. Its objects are Gateways as Services: the same code serves
// both. Call it once, before Services is read.
func (s *Snapshot) AddGateways() toolscache.Indexer {
	gateways := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, s.serviceIndexers())
	s.Services = servicesAndGateways{s.Services, gateways}
	return gateways
}

// servicesAndGateways reads two stores. Writes are those of Services.
type servicesAndGateways struct {
	toolscache.Indexer
	gateways toolscache.Indexer
}

// List implements toolscache.Store.
func (s servicesAndGateways) List() []any { return append(s.Indexer.List(), s.gateways.List()...) }

// GetByKey implements toolscache.Store.
func (s servicesAndGateways) GetByKey(key string) (item any, exists bool, err error) {
	if IsGatewayKey(key) {
		return s.gateways.GetByKey(key)
	}
	return s.Indexer.GetByKey(key)
}

// ByIndex implements toolscache.Indexer.
func (s servicesAndGateways) ByIndex(index, key string) ([]any, error) {
	services, err := s.Indexer.ByIndex(index, key)
	if err != nil {
		return nil, fmt.Errorf("index of Services: %w", err)
	}
	gateways, err := s.gateways.ByIndex(index, key)
	return append(services, gateways...), err
}

// HealthCheckAnnotation returns the annotation of a Gateway's Service with the healthCheckNodePort of a port. A Gateway
// or Service of a user never has it here: the cache drops unknown annotations.
func HealthCheckAnnotation(protocol corev1.Protocol, port int32) string {
	return "gateway.weir.dev/health-check-node-port-" + string(protocol) + "-" + strconv.Itoa(int(port))
}

func healthCheckNodePort(s *corev1.Service, p corev1.ServicePort) int32 {
	if _, ok := GatewayOf(s.Name); !ok {
		return 0
	}
	port, err := strconv.ParseUint(s.Annotations[HealthCheckAnnotation(p.Protocol, p.Port)], 10, 16)
	if err != nil {
		return 0
	}
	return int32(port) //nolint:gosec // it has 16 bits
}

// IsKept reports whether the cache keeps an annotation of a Service with a load balancer.
func IsKept(annotation string) bool {
	return strings.HasPrefix(annotation, azureAnnotations) || isWeirAnnotation(annotation)
}
