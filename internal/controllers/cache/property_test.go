// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/service"
)

// Each annotation of Weir that a Service is built from is kept in the cache and reaches the Service.
func TestWeirAnnotationsReachTheService(t *testing.T) {
	for _, name := range []string{service.Zones, service.RetainAddress, service.NoHealthyBackends, service.ConnectionTracking, service.DrainPeriod, service.GatewayLoadBalancer, service.WrittenProperties} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{name: "x"}}}
		if ServiceOf(s).Annotations[name] != "x" || !slices.Contains(weirAnnotations, name) {
			t.Errorf("%s is not read", name)
		}
	}
}

// An edited record has at most the known properties.
func TestRecordOfWrittenProperties(t *testing.T) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{service.WrittenProperties: "x, enable-connection-tracking,y,enable-connection-tracking"}}}
	if got := fmt.Sprint(ServiceLB(s).Record.Properties); got != "[enable-connection-tracking]" {
		t.Error(got)
	}
}
