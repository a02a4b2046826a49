// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/migrate"
)

func newOpenJournal() migrate.Journal {
	return migrate.Journal{LoadBalancers: make([]migrate.LoadBalancer, 1)}
}

func TestWhatIsDoneAboutAMigration(t *testing.T) {
	done, undone := newOpenJournal(), newOpenJournal()
	done.Done, undone.CompletedUndo = true, &migrate.UserRequest{By: "jane"}
	run := func(id string) migrate.UserRequests {
		return migrate.UserRequests{Run: &migrate.UserRequest{ID: id, By: "edge"}}
	}
	stop := migrate.UserRequests{Stop: &migrate.UserRequest{By: "jane", Reason: "the shop is open"}}
	undo := migrate.UserRequests{Stop: &migrate.UserRequest{By: "jane", Undo: true}}
	told := func(word migrate.ProgressState, answers string, why ...string) Migration {
		is := Migration{HasStatus: true, Status: migrate.NewProgress(word, why...)}
		if answers != "" {
			is.Status.AnsweredRequest = &migrate.UserRequest{ID: answers}
		}
		return is
	}
	with := func(is Migration, j migrate.Journal, asked migrate.UserRequests) Migration {
		is.Journal, is.Requests = j, asked
		return is
	}
	steps := migrate.Steps{Phase: migrate.PhaseDetach, WaitReasons: []string{"n1 is Updating"}}
	under := Migration{HasStatus: true, Status: migrate.NewStepProgress(steps, 1, 6)}
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
		{about: "it listens", is: told(migrate.ProgressIdle, ""), want: RequestMigration},
		{about: "it listens, and was never reached", is: told(migrate.ProgressIdle, ""), has: "1", want: RequestMigration},
		{about: "it was asked, and has not heard", is: with(told(migrate.ProgressIdle, ""), migrate.Journal{}, run("1")), has: "1", want: WaitForMigration, says: "has not begun, asked for by edge"},
		{about: "somebody else has asked", is: with(told(migrate.ProgressIdle, ""), migrate.Journal{}, run("x")), want: WaitForMigration},
		{about: "Azure does not answer yet", is: with(under, migrate.Journal{}, run("1")), has: "1", want: WaitForMigration, says: "waits for: n1 is Updating"},
		{about: "under way", is: with(under, newOpenJournal(), run("1")), has: "1", want: WaitForMigration, says: "1 of 6 steps are done; next is Detach; waits for: n1 is Updating"},
		{about: "under way, and it was not asked for from here", is: with(under, newOpenJournal(), migrate.UserRequests{}), want: WaitForMigration},
		{about: "under way, as what was told before is old", is: with(told(migrate.ProgressNotNeeded, ""), newOpenJournal(), migrate.UserRequests{}), want: WaitForMigration, says: "it is under way"},
		{about: "ended", is: with(told(migrate.ProgressDone, "1"), done, migrate.UserRequests{}), has: "1", want: FinishMigration},
		{about: "ended, and not told yet", is: with(under, done, migrate.UserRequests{}), has: "1", want: FinishMigration},
		{about: "nothing is Basic", is: told(migrate.ProgressNotNeeded, ""), want: FinishMigration},
		{about: "nothing is Basic, and somebody has it stop", is: with(told(migrate.ProgressNotNeeded, ""), migrate.Journal{}, stop), want: FinishMigration},
		{about: "an earlier one has ended, and another cannot start", is: with(told(migrate.ProgressRejected, "1", "ForeignRule"), done, migrate.UserRequests{}), has: "1", want: RejectMigration, says: "ForeignRule"},
		{about: "stopped before it is asked for", is: with(told(migrate.ProgressIdle, ""), migrate.Journal{}, stop), want: RejectMigration, says: "stopped it, asked for by jane: the shop is open"},
		{about: "stopped by somebody where no Weir speaks", is: Migration{Requests: stop}, want: RejectMigration},
		{about: "stopped under way", is: with(under, newOpenJournal(), stop), has: "1", want: RejectMigration, says: "the shop is open"},
		{about: "taken back under way", is: with(under, newOpenJournal(), undo), has: "1", want: RejectMigration, says: "has it taken back, asked for by jane"},
		{about: "was taken back", is: with(told(migrate.ProgressUndone, "1"), undone, migrate.UserRequests{}), has: "1", want: RejectMigration, says: "had it taken back, asked for by jane"},
		{about: "was taken back, and a person asks again", is: with(told(migrate.ProgressUndone, "1"), undone, migrate.UserRequests{}), has: "1", again: true, want: RequestMigration},
		{about: "was taken back, and an older wish has never arrived", is: with(told(migrate.ProgressUndone, "x"), undone, migrate.UserRequests{}), has: "1", want: RequestMigration},
		{about: "was taken back while it was watched", is: with(told(migrate.ProgressUndone, ""), undone, migrate.UserRequests{}), watched: true, want: RejectMigration, says: "by jane"},
		{about: "was taken back while it was watched, and a person asks again", is: with(told(migrate.ProgressUndone, ""), undone, migrate.UserRequests{}), watched: true, again: true, want: RequestMigration},
		{about: "given up while it was watched", is: with(told(migrate.ProgressFailed, ""), newOpenJournal(), migrate.UserRequests{}), watched: true, want: RequestMigration},
		{about: "was taken back before it was asked for", is: with(told(migrate.ProgressIdle, ""), undone, migrate.UserRequests{}), want: RequestMigration},
		{about: "no SKU", is: told(migrate.ProgressNoSKU, ""), want: RejectMigration, says: "loadBalancerSku"},
		{about: "refused", is: told(migrate.ProgressRejected, "2", "ForeignRule: r", "NATRule: n"), has: "2", want: RejectMigration, says: "ForeignRule: r; NATRule: n"},
		{about: "refused while the link was away", is: told(migrate.ProgressRejected, "1", "ForeignRule"), has: "1", want: RejectMigration},
		{about: "refused, and a person asks again", is: told(migrate.ProgressRejected, "1"), has: "1", again: true, want: RequestMigration},
		{about: "refused after a person has asked again", is: told(migrate.ProgressRejected, "2"), has: "2", again: true, want: RejectMigration},
		{about: "refused to somebody else", is: told(migrate.ProgressRejected, "x"), want: RequestMigration},
		{about: "refused to nobody", is: told(migrate.ProgressRejected, ""), want: RequestMigration},
		{about: "refused to somebody else while it was watched", is: Migration{HasStatus: true, Status: migrate.Progress{State: migrate.ProgressRejected, AnsweredRequest: &migrate.UserRequest{}}}, watched: true, want: RequestMigration},
		{about: "given up", is: told(migrate.ProgressFailed, "2", "no"), has: "2", want: FailMigration, says: "no"},
		{about: "given up for an earlier attempt", is: told(migrate.ProgressFailed, "1"), has: "1", want: RequestMigration},
		{about: "given up, and open", is: with(told(migrate.ProgressFailed, ""), newOpenJournal(), migrate.UserRequests{}), want: RequestMigration},
		{about: "heard, and nothing has come of it", is: told(migrate.ProgressIdle, "2"), has: "2", want: FailMigration},
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
		is := Migration{HasStatus: some(t, "speaks")}
		is.Status.State = rapid.SampledFrom([]migrate.ProgressState{migrate.ProgressIdle, migrate.ProgressNoSKU, migrate.ProgressNotNeeded, migrate.ProgressRejected, migrate.ProgressFailed, migrate.ProgressRunning, migrate.ProgressUndone, migrate.ProgressDone}).Draw(t, "word")
		if some(t, "answered") {
			is.Status.AnsweredRequest = &migrate.UserRequest{ID: ids.Draw(t, "answers")}
		}
		if some(t, "a journal") {
			is.Journal = newOpenJournal()
			is.Journal.Done = some(t, "done")
		}
		if some(t, "a stop") {
			is.Requests.Stop = &migrate.UserRequest{Undo: some(t, "undo")}
		}
		if some(t, "a run") {
			is.Requests.Run = &migrate.UserRequest{ID: ids.Draw(t, "run")}
		}
		s := MigrationStep{RequestID: "2", RecordedID: ids.Draw(t, "has"), WasRunning: some(t, "watched"), Retry: some(t, "again")}
		if do, _ := NextMigrationAction(is, s); do != RequestMigration {
			return
		}
		switch {
		case is.Requests.Stop != nil || is.Requests.Run != nil || !is.HasStatus:
			t.Fatalf("asks of %+v", is)
		case is.Journal.IsOpen() && is.Status.State != migrate.ProgressFailed:
			t.Fatalf("asks for what is under way: %+v", is)
		}
		is.Status.AnsweredRequest, s.RecordedID = &migrate.UserRequest{ID: s.RequestID}, s.RequestID // requested and answered
		if do, _ := NextMigrationAction(is, s); do == RequestMigration {
			t.Fatalf("asks twice by one wish: %+v", is)
		}
	})
}
