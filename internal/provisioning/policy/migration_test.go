// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/skumigration/phase"
)

func newOpenJournal() phase.Journal {
	return phase.Journal{LoadBalancers: make([]phase.LoadBalancer, 1)}
}

func TestMigrationActions(t *testing.T) {
	done, undone := newOpenJournal(), newOpenJournal()
	done.Done, undone.CompletedUndo = true, &phase.UserRequest{By: "jane"}
	run := func(id string) phase.UserRequests {
		return phase.UserRequests{Run: &phase.UserRequest{ID: id, By: "edge"}}
	}
	stop := phase.UserRequests{Stop: &phase.UserRequest{By: "jane", Reason: "the shop is open"}}
	undo := phase.UserRequests{Stop: &phase.UserRequest{By: "jane", Undo: true}}
	reported := func(word phase.ProgressState, answers string, reason ...string) Migration {
		migration := Migration{HasStatus: true, Status: phase.NewProgress(word, reason...)}
		if answers != "" {
			migration.Status.AnsweredRequest = &phase.UserRequest{ID: answers}
		}
		return migration
	}
	with := func(migration Migration, j phase.Journal, requested phase.UserRequests) Migration {
		migration.Journal, migration.Requests = j, requested
		return migration
	}
	steps := phase.Steps{Phase: phase.PhaseDetach, WaitReasons: []string{"n1 is Updating"}}
	under := Migration{HasStatus: true, Status: phase.NewStepProgress(steps, 1, 6)}
	for _, tt := range []struct {
		about    string
		current  Migration
		has      string // of attempt 2
		watched  bool
		retry    bool
		want     MigrationAction
		wantText string
	}{
		{about: "nobody is there", want: WaitForMigration, wantText: "no Weir"},
		{about: "nobody is there, and it was asked for", has: "1", want: WaitForMigration, wantText: "no Weir"},
		{about: "an older one has ended it", current: Migration{Journal: done}, want: FinishMigration},
		{about: "it listens", current: reported(phase.ProgressIdle, ""), want: RequestMigration},
		{about: "it listens, and was never reached", current: reported(phase.ProgressIdle, ""), has: "1", want: RequestMigration},
		{about: "it was asked, and has not heard", current: with(reported(phase.ProgressIdle, ""), phase.Journal{}, run("1")), has: "1", want: WaitForMigration, wantText: "has not started it, requested by edge"},
		{about: "another client has asked", current: with(reported(phase.ProgressIdle, ""), phase.Journal{}, run("x")), want: WaitForMigration},
		{about: "Azure does not answer yet", current: with(under, phase.Journal{}, run("1")), has: "1", want: WaitForMigration, wantText: "waits for: n1 is Updating"},
		{about: "under way", current: with(under, newOpenJournal(), run("1")), has: "1", want: WaitForMigration, wantText: "1 of 6 steps are done; next is Detach; waits for: n1 is Updating"},
		{about: "under way, and it was not asked for from here", current: with(under, newOpenJournal(), phase.UserRequests{}), want: WaitForMigration},
		{about: "under way, as what was told before is old", current: with(reported(phase.ProgressNotNeeded, ""), newOpenJournal(), phase.UserRequests{}), want: WaitForMigration, wantText: "it is under way"},
		{about: "ended", current: with(reported(phase.ProgressDone, "1"), done, phase.UserRequests{}), has: "1", want: FinishMigration},
		{about: "ended, and not told yet", current: with(under, done, phase.UserRequests{}), has: "1", want: FinishMigration},
		{about: "nothing is Basic", current: reported(phase.ProgressNotNeeded, ""), want: FinishMigration},
		{about: "nothing is Basic, and somebody has it stop", current: with(reported(phase.ProgressNotNeeded, ""), phase.Journal{}, stop), want: FinishMigration},
		{about: "an earlier one has ended, and another cannot start", current: with(reported(phase.ProgressRejected, "1", "ForeignRule"), done, phase.UserRequests{}), has: "1", want: RejectMigration, wantText: "ForeignRule"},
		{about: "stopped before it is asked for", current: with(reported(phase.ProgressIdle, ""), phase.Journal{}, stop), want: RejectMigration, wantText: "was stopped there, requested by jane: the shop is open"},
		{about: "stopped by somebody where no Weir speaks", current: Migration{Requests: stop}, want: RejectMigration},
		{about: "stopped under way", current: with(under, newOpenJournal(), stop), has: "1", want: RejectMigration, wantText: "the shop is open"},
		{about: "taken back under way", current: with(under, newOpenJournal(), undo), has: "1", want: RejectMigration, wantText: "is being undone there, requested by jane"},
		{about: "was taken back", current: with(reported(phase.ProgressUndone, "1"), undone, phase.UserRequests{}), has: "1", want: RejectMigration, wantText: "was undone there, requested by jane"},
		{about: "was taken back, and a person asks again", current: with(reported(phase.ProgressUndone, "1"), undone, phase.UserRequests{}), has: "1", retry: true, want: RequestMigration},
		{about: "was taken back, and an older wish has never arrived", current: with(reported(phase.ProgressUndone, "x"), undone, phase.UserRequests{}), has: "1", want: RequestMigration},
		{about: "was taken back while it was watched", current: with(reported(phase.ProgressUndone, ""), undone, phase.UserRequests{}), watched: true, want: RejectMigration, wantText: "by jane"},
		{about: "was taken back while it was watched, and a person asks again", current: with(reported(phase.ProgressUndone, ""), undone, phase.UserRequests{}), watched: true, retry: true, want: RequestMigration},
		{about: "given up while it was watched", current: with(reported(phase.ProgressFailed, ""), newOpenJournal(), phase.UserRequests{}), watched: true, want: RequestMigration},
		{about: "was taken back before it was asked for", current: with(reported(phase.ProgressIdle, ""), undone, phase.UserRequests{}), want: RequestMigration},
		{about: "no SKU", current: reported(phase.ProgressNoSKU, ""), want: RejectMigration, wantText: "loadBalancerSku"},
		{about: "refused", current: reported(phase.ProgressRejected, "2", "ForeignRule: r", "NATRule: n"), has: "2", want: RejectMigration, wantText: "ForeignRule: r; NATRule: n"},
		{about: "refused while the link was away", current: reported(phase.ProgressRejected, "1", "ForeignRule"), has: "1", want: RejectMigration},
		{about: "refused, and a person asks again", current: reported(phase.ProgressRejected, "1"), has: "1", retry: true, want: RequestMigration},
		{about: "refused after a person has asked again", current: reported(phase.ProgressRejected, "2"), has: "2", retry: true, want: RejectMigration},
		{about: "refused to another client", current: reported(phase.ProgressRejected, "x"), want: RequestMigration},
		{about: "refused to nobody", current: reported(phase.ProgressRejected, ""), want: RequestMigration},
		{about: "refused to another client while it was watched", current: Migration{HasStatus: true, Status: phase.Progress{State: phase.ProgressRejected, AnsweredRequest: &phase.UserRequest{}}}, watched: true, want: RequestMigration},
		{about: "given up", current: reported(phase.ProgressFailed, "2", "no"), has: "2", want: FailMigration, wantText: "no"},
		{about: "given up for an earlier attempt", current: reported(phase.ProgressFailed, "1"), has: "1", want: RequestMigration},
		{about: "given up, and open", current: with(reported(phase.ProgressFailed, ""), newOpenJournal(), phase.UserRequests{}), want: RequestMigration},
		{about: "heard, and nothing has come of it", current: reported(phase.ProgressIdle, "2"), has: "2", want: FailMigration},
	} {
		do, want := NextMigrationAction(tt.current, MigrationStep{RequestID: "2", RecordedID: tt.has, WasRunning: tt.watched, Retry: tt.retry})
		if do != tt.want || !strings.Contains(want, tt.wantText) {
			t.Errorf("%s: %s, %q, want %s, %q", tt.about, do, want, tt.want, tt.wantText)
		}
	}
}

// No request is sent while one is pending, the migration runs, a user stopped it, or no Weir would
// answer; and each ID is sent once.
func TestLawAMigrationIsAskedForOnce(t *testing.T) {
	some := func(t *rapid.T, name string) bool { return rapid.Bool().Draw(t, name) }
	ids := rapid.SampledFrom([]string{"", "1", "2"})
	rapid.Check(t, func(t *rapid.T) {
		migration := Migration{HasStatus: some(t, "speaks")}
		migration.Status.State = rapid.SampledFrom([]phase.ProgressState{phase.ProgressIdle, phase.ProgressNoSKU, phase.ProgressNotNeeded, phase.ProgressRejected, phase.ProgressFailed, phase.ProgressRunning, phase.ProgressUndone, phase.ProgressDone}).Draw(t, "word")
		if some(t, "answered") {
			migration.Status.AnsweredRequest = &phase.UserRequest{ID: ids.Draw(t, "answers")}
		}
		if some(t, "a journal") {
			migration.Journal = newOpenJournal()
			migration.Journal.Done = some(t, "done")
		}
		if some(t, "a stop") {
			migration.Requests.Stop = &phase.UserRequest{Undo: some(t, "undo")}
		}
		if some(t, "a run") {
			migration.Requests.Run = &phase.UserRequest{ID: ids.Draw(t, "run")}
		}
		s := MigrationStep{RequestID: "2", RecordedID: ids.Draw(t, "has"), WasRunning: some(t, "watched"), Retry: some(t, "again")}
		if do, _ := NextMigrationAction(migration, s); do != RequestMigration {
			return
		}
		switch {
		case migration.Requests.Stop != nil || migration.Requests.Run != nil || !migration.HasStatus:
			t.Fatalf("asks of %+v", migration)
		case migration.Journal.IsOpen() && migration.Status.State != phase.ProgressFailed:
			t.Fatalf("asks for what is under way: %+v", migration)
		}
		migration.Status.AnsweredRequest, s.RecordedID = &phase.UserRequest{ID: s.RequestID}, s.RequestID // requested and answered
		if do, _ := NextMigrationAction(migration, s); do == RequestMigration {
			t.Fatalf("one request takes effect twice: %+v", migration)
		}
	})
}
