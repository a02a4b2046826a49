// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/words"
)

// unserved returns a Service whose status does not match Azure, or resources without a Service; ""
// if all match.
func (s *stage) unserved() (string, error) {
	all, err := s.truth.balanced()
	if err != nil {
		return "", err
	}
	azure := s.observer.azureNow()
	for _, service := range all {
		if why := s.whyUnserved(service, azure); why != "" {
			return "Service " + service.Name + " " + why, nil
		}
	}
	return unequal(azure, len(all)), nil
}

// unequal reports resources whose number differs from the number of Services: each Service of the
// story has one port and its own pool.
func unequal(azure *shownAzure, services int) string {
	var wrong []string
	for _, part := range []struct {
		n    int
		noun string
	}{
		{len(azure.frontends), "frontend"}, {len(azure.rules), "rule"}, {len(azure.pools), "pool"},
		{azure.probes, "probe"}, {len(azure.publicIPs), "public IP"},
	} {
		if part.n != services {
			wrong = append(wrong, words.FormatCount(part.n, part.noun))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("Azure has %s for %s", strings.Join(wrong, ", "), words.FormatCount(services, "Service"))
}

func (s *stage) whyUnserved(service *corev1.Service, azure *shownAzure) string {
	if service.DeletionTimestamp != nil {
		return "is still going"
	}
	expected := s.truth.wanted(service.Name)
	for ip, name := range s.observer.foreignOf(service.Name) {
		expected[ip] = name
	}
	return broken(service, expected, azure)
}

// broken follows the address in a Service's status to its nodes and returns where the path ends, or
// "" if it is complete.
func broken(service *corev1.Service, expected addresses, azure *shownAzure) string {
	ip, ok := addressOf(service)
	if !ok {
		return "has no address"
	}
	rules := azure.behind(ip)
	if len(rules) != len(service.Spec.Ports) {
		return fmt.Sprintf("has %s, and %s there for %s", ip, words.FormatCount(len(rules), "rule"), words.FormatCount(len(service.Spec.Ports), "port"))
	}
	for _, r := range rules {
		if got := azure.pools[r.pool].addresses; !got.equal(expected) {
			return fmt.Sprintf("has %s, which leads to pool %s: it lacks %v and has %v too many", ip, r.pool, expected.minus(got), got.minus(expected))
		}
	}
	return ""
}

// addressOf returns the single address in a Service's status.
func addressOf(service *corev1.Service) (netip.Addr, bool) {
	ingress := service.Status.LoadBalancer.Ingress
	if len(ingress) != 1 {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(ingress[0].IP)
	return ip, err == nil
}
