// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"net/netip"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
)

// The journal is stored with other keys, and an unreadable one is not treated as missing.
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

// A journal is sealed only over the one that was read and without a stop request. A completed undo
// clears the requests, unless the undo request was withdrawn.
func TestSealingTheJournalOfAMigration(t *testing.T) {
	begun := migrate.Journal{Balancers: []migrate.Balancer{{ID: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}}}}
	final, undone, other := begun, begun, begun
	final.Final, undone.Undone, other.Apart = "it is gone", &migrate.Wish{By: "jane"}, true
	undo := migrate.Asked{Stop: &migrate.Wish{Undo: true}, Run: &migrate.Wish{}}
	for _, tt := range []struct {
		about        string
		is           migrate.Journal
		asked        migrate.Asked
		seals, undid bool
	}{
		{"nobody asks for anything", begun, migrate.Asked{}, true, false},
		{"somebody asks it to begin", begun, migrate.Asked{Run: &migrate.Wish{}}, true, false},
		{"somebody asks for a stop", begun, stop, false, false},
		{"somebody asks to have it undone", begun, undo, false, true},
		{"another process has gone on", other, migrate.Asked{}, false, false},
	} {
		holding := func() (Migration, func() map[string]string) {
			api := fake.NewClientBuilder().WithScheme(view.Scheme()).WithObjects(recordHolding(map[string]string{
				"else": "x", keyMigration: migrate.Format(tt.is), keyAsked: migrate.FormatAsked(tt.asked),
			})).Build()
			return Migration{Reader: api, Writer: api, Namespace: "weir-system"}, func() map[string]string { return recordOf(t, api) }
		}
		m, record := holding()
		sealed, err := m.Seal(t.Context(), begun, final)
		want := migrate.Format(tt.is)
		if tt.seals {
			want = migrate.Format(final)
		}
		if got := record(); err != nil || sealed != tt.seals || got[keyMigration] != want || got[keyAsked] != migrate.FormatAsked(tt.asked) || got["else"] != "x" {
			t.Errorf("%s: sealed %t, %v: %v", tt.about, sealed, err, got)
		}
		m, record = holding()
		undid, err := m.Undone(t.Context(), undone)
		want, asked := migrate.Format(tt.is), migrate.FormatAsked(tt.asked)
		if tt.undid {
			want, asked = migrate.Format(undone), ""
		}
		if got := record(); err != nil || undid != tt.undid || got[keyMigration] != want || got[keyAsked] != asked || got["else"] != "x" {
			t.Errorf("%s: undone %t, %v: %v", tt.about, undid, err, got)
		}
	}
}

// The leader's report is stored with the request it answers, and written only when it changes.
func TestWhatIsSaidOfAMigration(t *testing.T) {
	run := &migrate.Wish{By: "edge", ID: "1"}
	writes := 0
	base := fake.NewClientBuilder().WithScheme(view.Scheme()).WithObjects(recordHolding(map[string]string{
		"else": "x", keyAsked: migrate.FormatAsked(migrate.Asked{Run: run}), keyTold: "{",
	})).Build()
	api := interceptor.NewClient(base, interceptor.Funcs{
		Update: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			writes++
			return api.Update(ctx, obj, opts...)
		},
	})
	m := Migration{Reader: api, Writer: api, Namespace: "weir-system"}
	told := func() migrate.Told {
		r, err := Read(t.Context(), api, "weir-system")
		if err != nil {
			t.Fatal(err)
		}
		is, _ := r.Told()
		return is
	}
	if is := told(); is.Word != "" {
		t.Errorf("what nobody can read says %+v", is)
	}
	for range 2 {
		if err := m.Say(t.Context(), migrate.Tell(migrate.Refused, "a foreign rule")); err != nil || writes != 1 {
			t.Errorf("%v after %d writes", err, writes)
		}
	}
	if is := told(); is.Answers != nil || is.Reasons[0] != "a foreign rule" {
		t.Errorf("before it is answered: %+v", is)
	}
	if err := m.Answered(t.Context()); err != nil || recordOf(t, api)[keyAsked] != "" || *told().Answers != *run {
		t.Errorf("answered: %v, %v", err, recordOf(t, api))
	}
	for _, tt := range []struct{ says, is migrate.Word }{{migrate.Listens, migrate.Refused}, {migrate.UnderWay, migrate.UnderWay}, {migrate.Listens, migrate.Listens}} {
		if err := m.Say(t.Context(), migrate.Tell(tt.says)); err != nil || told().Word != tt.is || *told().Answers != *run {
			t.Errorf("%s is told: %v, %+v", tt.says, err, told())
		}
	}
	undo := migrate.Asked{Stop: &migrate.Wish{By: "jane", Undo: true}, Run: &migrate.Wish{ID: "2"}}
	if err := Ask(t.Context(), api, "weir-system", func(Record) (migrate.Asked, error) { return undo, nil }); err != nil {
		t.Fatal(err)
	}
	if undid, err := m.Undone(t.Context(), migrate.Journal{}); err != nil || !undid || told().Word != migrate.TakenBack || told().Answers.ID != "2" || recordOf(t, api)["else"] != "x" {
		t.Errorf("undone: %t, %v, %v", undid, err, recordOf(t, api))
	}
}
