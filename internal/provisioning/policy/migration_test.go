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

func TestWhatIsDoneAboutAMigration(t *testing.T) {
	done, undone := newOpenJournal(), newOpenJournal()
	done.Done, undone.CompletedUndo = true, &phase.UserRequest{By: "jane"}
	run := func(id string) phase.UserRequests {
		return phase.UserRequests{Run: &phase.UserRequest{ID: id, By: "edge"}}
	}
	stop := phase.UserRequests{Stop: &phase.UserRequest{By: "jane", Reason: "the shop is open"}}
	undo := phase.UserRequests{Stop: &phase.UserRequest{By: "jane", Undo: true}}
	told := func(word phase.ProgressState, answers string, why ...string) Migration {
		migration := Migration{HasStatus: true, Status: phase.NewProgress(word, why...)}
		if answers != "" {
			migration.Status.AnsweredRequest = &phase.UserRequest{ID: answers}
		}
		return migration
	}
	with := func(migration Migration, j phase.Journal, asked phase.UserRequests) Migration {
		migration.Journal, migration.Requests = j, asked
		return migration
	}
	steps := phase.Steps{Phase: phase.PhaseDetach, WaitReasons: []string{"n1 is Updating"}}
	under := Migration{HasStatus: true, Status: phase.NewStepProgress(steps, 1, 6)}
	for _, tt := range []struct {
		about   string
		is      Migration
		has     string // of attempt 2
		watched bool
		again   bool
		want    MigrationAction
		says    string
	}{
		{about: "nobody is there", want: WaitForMigration, says: "no Weir"},
		{about: "nobody is there, and it was asked for", has: "1", want: WaitForMigration, says: "no Weir"},
		{about: "an older one has ended it", is: Migration{Journal: done}, want: FinishMigration},
		{about: "it listens", is: told(phase.ProgressIdle, ""), want: RequestMigration},
		{about: "it listens, and was never reached", is: told(phase.ProgressIdle, ""), has: "1", want: RequestMigration},
		{about: "it was asked, and has not heard", is: with(told(phase.ProgressIdle, ""), phase.Journal{}, run("1")), has: "1", want: WaitForMigration, says: "has not started it, requested by edge"},
		{about: "another client has asked", is: with(told(phase.ProgressIdle, ""), phase.Journal{}, run("x")), want: WaitForMigration},
		{about: "Azure does not answer yet", is: with(under, phase.Journal{}, run("1")), has: "1", want: WaitForMigration, says: "waits for: n1 is Updating"},
		{about: "under way", is: with(under, newOpenJournal(), run("1")), has: "1", want: WaitForMigration, says: "1 of 6 steps are done; next is Detach; waits for: n1 is Updating"},
		{about: "under way, and it was not asked for from here", is: with(under, newOpenJournal(), phase.UserRequests{}), want: WaitForMigration},
		{about: "under way, as what was told before is old", is: with(told(phase.ProgressNotNeeded, ""), newOpenJournal(), phase.UserRequests{}), want: WaitForMigration, says: "it is under way"},
		{about: "ended", is: with(told(phase.ProgressDone, "1"), done, phase.UserRequests{}), has: "1", want: FinishMigration},
		{about: "ended, and not told yet", is: with(under, done, phase.UserRequests{}), has: "1", want: FinishMigration},
		{about: "nothing is Basic", is: told(phase.ProgressNotNeeded, ""), want: FinishMigration},
		{about: "nothing is Basic, and somebody has it stop", is: with(told(phase.ProgressNotNeeded, ""), phase.Journal{}, stop), want: FinishMigration},
		{about: "an earlier one has ended, and another cannot start", is: with(told(phase.ProgressRejected, "1", "ForeignRule"), done, phase.UserRequests{}), has: "1", want: RejectMigration, says: "ForeignRule"},
		{about: "stopped before it is asked for", is: with(told(phase.ProgressIdle, ""), phase.Journal{}, stop), want: RejectMigration, says: "was stopped there, requested by jane: the shop is open"},
		{about: "stopped by somebody where no Weir speaks", is: Migration{Requests: stop}, want: RejectMigration},
		{about: "stopped under way", is: with(under, newOpenJournal(), stop), has: "1", want: RejectMigration, says: "the shop is open"},
		{about: "taken back under way", is: with(under, newOpenJournal(), undo), has: "1", want: RejectMigration, says: "is being undone there, requested by jane"},
		{about: "was taken back", is: with(told(phase.ProgressUndone, "1"), undone, phase.UserRequests{}), has: "1", want: RejectMigration, says: "was undone there, requested by jane"},
		{about: "was taken back, and a person asks again", is: with(told(phase.ProgressUndone, "1"), undone, phase.UserRequests{}), has: "1", again: true, want: RequestMigration},
		{about: "was taken back, and an older wish has never arrived", is: with(told(phase.ProgressUndone, "x"), undone, phase.UserRequests{}), has: "1", want: RequestMigration},
		{about: "was taken back while it was watched", is: with(told(phase.ProgressUndone, ""), undone, phase.UserRequests{}), watched: true, want: RejectMigration, says: "by jane"},
		{about: "was taken back while it was watched, and a person asks again", is: with(told(phase.ProgressUndone, ""), undone, phase.UserRequests{}), watched: true, again: true, want: RequestMigration},
		{about: "given up while it was watched", is: with(told(phase.ProgressFailed, ""), newOpenJournal(), phase.UserRequests{}), watched: true, want: RequestMigration},
		{about: "was taken back before it was asked for", is: with(told(phase.ProgressIdle, ""), undone, phase.UserRequests{}), want: RequestMigration},
		{about: "no SKU", is: told(phase.ProgressNoSKU, ""), want: RejectMigration, says: "loadBalancerSku"},
		{about: "refused", is: told(phase.ProgressRejected, "2", "ForeignRule: r", "NATRule: n"), has: "2", want: RejectMigration, says: "ForeignRule: r; NATRule: n"},
		{about: "refused while the link was away", is: told(phase.ProgressRejected, "1", "ForeignRule"), has: "1", want: RejectMigration},
		{about: "refused, and a person asks again", is: told(phase.ProgressRejected, "1"), has: "1", again: true, want: RequestMigration},
		{about: "refused after a person has asked again", is: told(phase.ProgressRejected, "2"), has: "2", again: true, want: RejectMigration},
		{about: "refused to another client", is: told(phase.ProgressRejected, "x"), want: RequestMigration},
		{about: "refused to nobody", is: told(phase.ProgressRejected, ""), want: RequestMigration},
		{about: "refused to another client while it was watched", is: Migration{HasStatus: true, Status: phase.Progress{State: phase.ProgressRejected, AnsweredRequest: &phase.UserRequest{}}}, watched: true, want: RequestMigration},
		{about: "given up", is: told(phase.ProgressFailed, "2", "no"), has: "2", want: FailMigration, says: "no"},
		{about: "given up for an earlier attempt", is: told(phase.ProgressFailed, "1"), has: "1", want: RequestMigration},
		{about: "given up, and open", is: with(told(phase.ProgressFailed, ""), newOpenJournal(), phase.UserRequests{}), want: RequestMigration},
		{about: "heard, and nothing has come of it", is: told(phase.ProgressIdle, "2"), has: "2", want: FailMigration},
	} {
		do, says := NextMigrationAction(tt.is, MigrationStep{RequestID: "2", RecordedID: tt.has, WasRunning: tt.watched, Retry: tt.again})
		if do != tt.want || !strings.Contains(says, tt.says) {
			t.Errorf("%s: %s, %q, want %s, %q", tt.about, do, says, tt.want, tt.says)
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
