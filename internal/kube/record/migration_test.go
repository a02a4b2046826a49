// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
)

// The journal of a migration is kept beside what else is on record, and one that nobody can read is not taken
// for none.
func TestKeepingTheJournalOfAMigration(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(view.Scheme()).WithObjects(recordHolding(map[string]string{"else": "x"})).Build()
	m := Migration{Reader: api, Writer: api, Namespace: "weir-system"}
	if j, _, err := m.Read(t.Context()); err != nil || len(j.Balancers) > 0 {
		t.Fatalf("%+v, %v", j, err)
	}
	j := migrate.Journal{Balancers: []migrate.Balancer{{
		ID:        lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"},
		Addresses: []migrate.Address{{Frontend: "a1", Family: lb.IPv4, IP: netip.MustParseAddr("10.0.0.9"), Subnet: "/subnets/nodes"}},
	}}}
	if err := m.Keep(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	again, _, err := m.Read(t.Context())
	if err != nil || migrate.Format(again) != migrate.Format(j) || recordOf(t, api)["else"] != "x" {
		t.Errorf("%+v, %v, beside %v", again, err, recordOf(t, api))
	}
	broken := fake.NewClientBuilder().WithScheme(view.Scheme()).WithObjects(recordHolding(map[string]string{keyMigration: "{"})).Build()
	if _, _, err := (Migration{Reader: broken, Writer: broken, Namespace: "weir-system"}).Read(t.Context()); err == nil {
		t.Error("what nobody can read is taken for nothing")
	}
}
