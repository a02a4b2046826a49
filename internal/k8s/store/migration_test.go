// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"net/netip"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// The journal is stored with other keys, and an unreadable one is not treated as missing.
func TestKeepingTheJournalOfAMigration(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(map[string]string{"else": "x"})).Build()
	m := Migration{Reader: api, Writer: api, Namespace: "weir-system"}
	if j, _, err := m.Load(t.Context()); err != nil || len(j.LoadBalancers) > 0 {
		t.Fatalf("%+v, %v", j, err)
	}
	j := phase.Journal{LoadBalancers: []phase.LoadBalancer{{
		ID:        lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"},
		Addresses: []phase.Address{{Frontend: "a1", Family: lb.IPv4, IP: netip.MustParseAddr("10.0.0.9"), Subnet: "/subnets/nodes"}},
	}}}
	if err := m.SaveJournal(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	second, _, err := m.Load(t.Context())
	if err != nil || phase.FormatJournal(second) != phase.FormatJournal(j) || recordOf(t, api)["else"] != "x" {
		t.Errorf("%+v, %v, beside %v", second, err, recordOf(t, api))
	}
	broken := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(map[string]string{keyMigration: "{"})).Build()
	if _, _, err := (Migration{Reader: broken, Writer: broken, Namespace: "weir-system"}).Load(t.Context()); err == nil {
		t.Error("what nobody can read is taken for nothing")
	}
}

// A journal is sealed only over the one that was read and without a stop request. A completed undo
// clears the requests, unless the undo request was withdrawn.
func TestSealingTheJournalOfAMigration(t *testing.T) {
	begun := phase.Journal{LoadBalancers: []phase.LoadBalancer{{ID: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}}}}
	final, undone, other := begun, begun, begun
	final.FinalReason, undone.CompletedUndo, other.TrafficStopped = "it is gone", &phase.UserRequest{By: "jane"}, true
	undo := phase.UserRequests{Stop: &phase.UserRequest{Undo: true}, Run: &phase.UserRequest{}}
	for _, tt := range []struct {
		about        string
		want         phase.Journal
		requested    phase.UserRequests
		seals, undid bool
	}{
		{"nobody asks for anything", begun, phase.UserRequests{}, true, false},
		{"somebody asks it to begin", begun, phase.UserRequests{Run: &phase.UserRequest{}}, true, false},
		{"somebody asks for a stop", begun, stop, false, false},
		{"somebody asks to have it undone", begun, undo, false, true},
		{"another process has gone on", other, phase.UserRequests{}, false, false},
	} {
		holding := func() (Migration, func() map[string]string) {
			api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(map[string]string{
				"else": "x", keyMigration: phase.FormatJournal(tt.want), keyRequests: phase.FormatUserRequests(tt.requested),
			})).Build()
			return Migration{Reader: api, Writer: api, Namespace: "weir-system"}, func() map[string]string { return recordOf(t, api) }
		}
		m, record := holding()
		sealed, err := m.SaveFinalJournal(t.Context(), begun, final)
		want := phase.FormatJournal(tt.want)
		if tt.seals {
			want = phase.FormatJournal(final)
		}
		if got := record(); err != nil || sealed != tt.seals || got[keyMigration] != want || got[keyRequests] != phase.FormatUserRequests(tt.requested) || got["else"] != "x" {
			t.Errorf("%s: sealed %t, %v: %v", tt.about, sealed, err, got)
		}
		m, record = holding()
		undid, err := m.CompleteUndo(t.Context(), undone)
		want, requests := phase.FormatJournal(tt.want), phase.FormatUserRequests(tt.requested)
		if tt.undid {
			want, requests = phase.FormatJournal(undone), ""
		}
		if got := record(); err != nil || undid != tt.undid || got[keyMigration] != want || got[keyRequests] != requests || got["else"] != "x" {
			t.Errorf("%s: undone %t, %v: %v", tt.about, undid, err, got)
		}
	}
}

// The leader's report is stored with the request it answers, and written only when it changes.
func TestMigrationReport(t *testing.T) {
	run := &phase.UserRequest{By: "edge", ID: "1"}
	writes := 0
	base := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(map[string]string{
		"else": "x", keyRequests: phase.FormatUserRequests(phase.UserRequests{Run: run}), keyReport: "{",
	})).Build()
	api := interceptor.NewClient(base, interceptor.Funcs{
		Update: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			writes++
			return api.Update(ctx, obj, opts...)
		},
	})
	m := Migration{Reader: api, Writer: api, Namespace: "weir-system"}
	reported := func() phase.Progress {
		r, err := Read(t.Context(), api, "weir-system")
		if err != nil {
			t.Fatal(err)
		}
		progress, _ := r.MigrationReport()
		return progress
	}
	if progress := reported(); progress.State != "" {
		t.Errorf("an unreadable record has %+v", progress)
	}
	for range 2 {
		if err := m.SaveReport(t.Context(), phase.NewProgress(phase.ProgressRejected, "a foreign rule")); err != nil || writes != 1 {
			t.Errorf("%v after %d writes", err, writes)
		}
	}
	if progress := reported(); progress.AnsweredRequest != nil || progress.Reasons[0] != "a foreign rule" {
		t.Errorf("before it is answered: %+v", progress)
	}
	if err := m.ClearStartRequest(t.Context()); err != nil || recordOf(t, api)[keyRequests] != "" || *reported().AnsweredRequest != *run {
		t.Errorf("answered: %v, %v", err, recordOf(t, api))
	}
	for _, tt := range []struct{ wantText, want phase.ProgressState }{{phase.ProgressIdle, phase.ProgressRejected}, {phase.ProgressRunning, phase.ProgressRunning}, {phase.ProgressIdle, phase.ProgressIdle}} {
		if err := m.SaveReport(t.Context(), phase.NewProgress(tt.wantText)); err != nil || reported().State != tt.want || *reported().AnsweredRequest != *run {
			t.Errorf("%s is told: %v, %+v", tt.wantText, err, reported())
		}
	}
	undo := phase.UserRequests{Stop: &phase.UserRequest{By: "jane", Undo: true}, Run: &phase.UserRequest{ID: "2"}}
	if err := UpdateRequests(t.Context(), api, "weir-system", func(Record) (phase.UserRequests, error) { return undo, nil }); err != nil {
		t.Fatal(err)
	}
	if undid, err := m.CompleteUndo(t.Context(), phase.Journal{}); err != nil || !undid || reported().State != phase.ProgressUndone || reported().AnsweredRequest.ID != "2" || recordOf(t, api)["else"] != "x" {
		t.Errorf("undone: %t, %v, %v", undid, err, recordOf(t, api))
	}
}
