// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
)

func ipKey(name string) string {
	return lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: name}.Key()
}

func ownersHolding(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: PublicIPsName}, Data: map[string]string{keyOwners: text}}
}

// Owners survive a round trip and a restart. A deleted ConfigMap is recreated; a concurrent write
// is not overwritten.
func TestOwnersAreOnRecord(t *testing.T) {
	ctx, api := t.Context(), fake.NewClientBuilder().WithScheme(metadata.Scheme()).Build()
	p := PublicIPOwners{Reader: api, Writer: api, Namespace: "weir-system"}
	r, err := p.ReadOwners(ctx)
	if err != nil || r.Version != "" || len(r.Owners) > 0 {
		t.Fatalf("nothing there: %v, %v", r, err)
	}
	r.Owners = map[string]publicip.Owner{ipKey("a"): {Namespace: "shop", Since: time.Unix(1000, 0).UTC()}, ipKey("b"): {Namespace: "bank", Since: time.Unix(2000, 0).UTC()}}
	write := func() {
		t.Helper()
		if r.Version, err = p.WriteOwners(ctx, r); err != nil || r.Version == "" {
			t.Fatalf("%q, %v", r.Version, err)
		}
		if got, err := p.ReadOwners(ctx); err != nil || got.Version != r.Version || !maps.Equal(got.Owners, r.Owners) {
			t.Errorf("%v comes back as %v, %v", r, got, err)
		}
	}
	write()
	stale := r
	delete(r.Owners, ipKey("b"))
	write()
	if _, err := p.WriteOwners(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("an old version is written: %v", err)
	}
	if err := api.Delete(ctx, ownersHolding("")); err != nil {
		t.Fatal(err)
	}
	write()
	if _, err := p.WriteOwners(ctx, publicip.OwnerRecord{Owners: r.Owners}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a record that was not read is overwritten: %v", err)
	}
}

func TestOwnersThatCannotBeRead(t *testing.T) {
	for text, wantText := range map[string]string{
		"nonsense": `ConfigMap weir-system/weir-public-ips, key owners, line 1 is "nonsense": want the id of a public IP, a namespace and a time; to start with an empty record, delete the ConfigMap`,
		ipKey("a") + " shop 2026-01-01T00:00:00Z\n" + ipKey("b") + " shop yesterday": "line 2",
		"/subscriptions/s shop 2026-01-01T00:00:00Z":                                 "line 1",
	} {
		api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(ownersHolding(text)).Build()
		if r, err := (PublicIPOwners{Reader: api, Writer: api, Namespace: "weir-system"}).ReadOwners(t.Context()); err == nil || !strings.Contains(err.Error(), wantText) || r.Owners != nil {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	forbids := interceptor.NewClient(fake.NewClientBuilder().WithScheme(metadata.Scheme()).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, PublicIPsName, nil)
		},
	})
	if _, err := (PublicIPOwners{Reader: forbids, Namespace: "weir-system"}).ReadOwners(t.Context()); err == nil || !strings.Contains(err.Error(), "apply config/rbac") {
		t.Errorf("%v", err)
	}
}

// A record above the API server's limit is not sent. 5,000 public IPs fit.
func TestTheSizeOfTheRecord(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).Build()
	p := PublicIPOwners{Reader: api, Writer: api, Namespace: "weir-system"}
	id := lb.ResourceID{SubscriptionID: "00000000-0000-0000-0000-000000000001", ResourceGroup: "resources", Type: lb.TypePublicIP}
	owners := map[string]publicip.Owner{}
	for i := range 6000 {
		id.Name = fmt.Sprintf("public-ip-%05d", i)
		owners[id.Key()] = publicip.Owner{Namespace: "some-namespace", Since: time.Unix(1000, 0)}
		if i == 4999 {
			if _, err := p.WriteOwners(t.Context(), publicip.OwnerRecord{Owners: owners}); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := p.WriteOwners(t.Context(), publicip.OwnerRecord{Owners: owners}); err == nil || !strings.Contains(err.Error(), "for 6000 public IPs, and the maximum is 921600") {
		t.Errorf("%.200v", err)
	}
}
