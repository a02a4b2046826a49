// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
)

// Reservations survive a round trip; a concurrent write is not overwritten.
func TestReservationsAreOnRecord(t *testing.T) {
	ctx, api := t.Context(), fake.NewClientBuilder().WithScheme(metadata.Scheme()).Build()
	p := PrivateIPReservations{Reader: api, Writer: api, Namespace: "weir-system"}
	r, err := p.ReadReservations(ctx)
	if err != nil || r.Version != "" || len(r.Reservations) > 0 {
		t.Fatalf("nothing there: %v, %v", r, err)
	}
	r.Reservations = map[string]loadbalancer.PrivateIPReservation{
		"/s/subnets/nodes 10.0.0.9": {Namespace: "shop", LoadBalancer: "kubernetes-internal"},
		"/s/subnets/nodes fd00::9":  {Namespace: "bank", LoadBalancer: "kubernetes-internal", Expires: time.Unix(1000, 0).UTC()},
	}
	if r.Version, err = p.WriteReservations(ctx, r); err != nil || r.Version == "" {
		t.Fatalf("%q, %v", r.Version, err)
	}
	if got, err := p.ReadReservations(ctx); err != nil || got.Version != r.Version || !maps.Equal(got.Reservations, r.Reservations) {
		t.Errorf("%v comes back as %v, %v", r, got, err)
	}
	stale := r
	if _, err = p.WriteReservations(ctx, r); err != nil {
		t.Error(err)
	}
	if _, err := p.WriteReservations(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("an old version is written: %v", err)
	}
}

func TestReservationsThatCannotBeRead(t *testing.T) {
	for text, wantText := range map[string]string{
		"nonsense": `ConfigMap weir-system/weir-private-ips, key reservations, line 1 is "nonsense": want a subnet, an address, a namespace, a load balancer, and a time or "-"; to start with an empty record, delete the ConfigMap`,
		"/s 10.0.0.9 shop lb -\n/s 10.0.0 shop lb -": "line 2",
		"/s 10.0.0.9 shop lb tomorrow":               "line 1",
	} {
		api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: PrivateIPsName}, Data: map[string]string{keyReservations: text},
		}).Build()
		if r, err := (PrivateIPReservations{Reader: api, Writer: api, Namespace: "weir-system"}).ReadReservations(t.Context()); err == nil || !strings.Contains(err.Error(), wantText) || r.Reservations != nil {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
}

// A record above the API server's limit is not sent. 3,500 addresses fit.
func TestTheSizeOfReservations(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).Build()
	p := PrivateIPReservations{Reader: api, Writer: api, Namespace: "weir-system"}
	reservations := map[string]loadbalancer.PrivateIPReservation{}
	for i := range 6000 {
		key := fmt.Sprintf("/subscriptions/00000000-0000-0000-0000-000000000001/resourcegroups/resources/providers/microsoft.network/virtualnetworks/network/subnets/nodes 10.0.%d.%d", i/256, i%256)
		reservations[key] = loadbalancer.PrivateIPReservation{Namespace: "some-namespace", LoadBalancer: "kubernetes-internal", Expires: time.Unix(1000, 0)}
		if i == 3499 {
			if _, err := p.WriteReservations(t.Context(), loadbalancer.PrivateIPRecord{Reservations: reservations}); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := p.WriteReservations(t.Context(), loadbalancer.PrivateIPRecord{Reservations: reservations}); err == nil || !strings.Contains(err.Error(), "for 6000 private addresses, and the maximum is 921600") {
		t.Errorf("%.200v", err)
	}
}
