// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/humanize"
)

// dataPathMismatch returns a Service with a status that does not match Azure, or resources without a Service; ""
// if all match.
func (s *stage) dataPathMismatch() (string, error) {
	services, err := s.desired.loadBalancerServices()
	if err != nil {
		return "", err
	}
	azure := s.observer.latestSnapshot()
	for _, service := range services {
		if reason := s.dataPathReason(service, azure); reason != "" {
			return "Service " + service.Name + " " + reason, nil
		}
	}
	return countMismatch(azure, len(services)), nil
}

// countMismatch reports resources whose number differs from the number of Services: each Service of the
// story has one port and its own pool. The pool of all nodes of a Gateway remains with the load balancer.
func countMismatch(azure *azureSnapshot, services int) string {
	var failures []string
	pools := len(azure.pools)
	if azure.hasPool(loadBalancer) {
		pools--
	}
	for _, part := range []struct {
		n    int
		noun string
	}{
		{len(azure.frontends), "frontend"}, {len(azure.rules), "rule"}, {pools, "pool"},
		{azure.probes, "probe"}, {len(azure.publicIPs), "public IP"},
	} {
		if part.n != services {
			failures = append(failures, humanize.FormatCount(part.n, part.noun))
		}
	}
	if len(failures) == 0 {
		return ""
	}
	return fmt.Sprintf("Azure has %s for %s", strings.Join(failures, ", "), humanize.FormatCount(services, "Service"))
}

func (s *stage) dataPathReason(service *corev1.Service, azure *azureSnapshot) string {
	if service.DeletionTimestamp != nil {
		return "is still going"
	}
	expected := s.desired.desiredAddresses(service.Name)
	for ip, name := range s.observer.foreignOf(service.Name) {
		expected[ip] = name
	}
	return brokenPath(service, expected, azure)
}

// brokenPath follows the address in a Service's status to its nodes and returns where the path ends, or
// "" if it is complete.
func brokenPath(service *corev1.Service, expected addresses, azure *azureSnapshot) string {
	ip, ok := serviceAddress(service)
	if !ok {
		return "has no address"
	}
	rules := azure.rulesFor(ip)
	if len(rules) != len(service.Spec.Ports) {
		return fmt.Sprintf("has %s, and %s there for %s", ip, humanize.FormatCount(len(rules), "rule"), humanize.FormatCount(len(service.Spec.Ports), "port"))
	}
	for _, r := range rules {
		if got := azure.pools[r.pool].addresses; !got.equalSet(expected) {
			return fmt.Sprintf("has %s, which leads to pool %s: it lacks %v and has %v too many", ip, r.pool, expected.subtractSet(got), got.subtractSet(expected))
		}
	}
	return ""
}

// serviceAddress returns the single address in a Service's status.
func serviceAddress(service *corev1.Service) (netip.Addr, bool) {
	ingress := service.Status.LoadBalancer.Ingress
	if len(ingress) != 1 {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(ingress[0].IP)
	return ip, err == nil
}
