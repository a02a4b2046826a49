// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/k8s/metadata"
)

// A record is parsed without duplicates and with a limit: a user may write 12,000 names.
func TestRecordsAreReadOnce(t *testing.T) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		metadata.PlaceAnnotation:  strings.Repeat("kubernetes, Kubernetes ,kubernetes-internal,", 4000),
		metadata.GroupsAnnotation: strings.Repeat("rg-1,RG-1,", 6000),
	}}}
	if got := ServiceLB(s).Record.LoadBalancers; !slices.Equal(got, []string{"kubernetes", "kubernetes-internal"}) {
		t.Errorf("%d places: %.80v", len(got), got)
	}
	if got := ServiceLB(s).Record.Groups; !slices.Equal(got, []string{"rg-1"}) {
		t.Errorf("groups: %v", got)
	}
	many := ""
	for i := range 12_000 {
		many += fmt.Sprint("rg-", i, ",")
	}
	s.Annotations[metadata.GroupsAnnotation] = many
	if got := ServiceLB(s).Record.Groups; len(got) != 8 {
		t.Errorf("%d groups", len(got))
	}
}
