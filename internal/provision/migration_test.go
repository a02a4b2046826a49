// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/migrate"
)

func begun() migrate.Journal { return migrate.Journal{Balancers: make([]migrate.Balancer, 1)} }

func TestWhatIsDoneAboutAMigration(t *testing.T) {
	done, undone := begun(), begun()
	done.Done, undone.Undone = true, &migrate.Wish{By: "jane"}
	run := func(id string) migrate.Asked { return migrate.Asked{Run: &migrate.Wish{ID: id, By: "edge"}} }
	stop := migrate.Asked{Stop: &migrate.Wish{By: "jane", Why: "the shop is open"}}
	undo := migrate.Asked{Stop: &migrate.Wish{By: "jane", Undo: true}}
	told := func(word migrate.Word, answers string, why ...string) Migration {
		is := Migration{Speaks: true, Told: migrate.Tell(word, why...)}
		if answers != "" {
			is.Told.Answers = &migrate.Wish{ID: answers}
		}
		return is
	}
	with := func(is Migration, j migrate.Journal, asked migrate.Asked) Migration {
		is.Journal, is.Asked = j, asked
		return is
	}
	steps := migrate.Steps{Phase: migrate.Detach, Waits: []string{"n1 is Updating"}}
	under := Migration{Speaks: true, Told: migrate.TellSteps(steps, 1, 6)}
	for _, tt := range []struct {
		about   string
		is      Migration
		has     string // of attempt 2
		watched bool
		again   bool
		want    MigrationDo
		says    string
	}{
		{about: "nobody is there", want: AwaitMigration, says: "no Weir"},
		{about: "nobody is there, and it was asked for", has: "1", want: AwaitMigration, says: "no Weir"},
		{about: "an older one has ended it", is: Migration{Journal: done}, want: EndMigration},
		{about: "it listens", is: told(migrate.Listens, ""), want: AskMigration},
		{about: "it listens, and was never reached", is: told(migrate.Listens, ""), has: "1", want: AskMigration},
		{about: "it was asked, and has not heard", is: with(told(migrate.Listens, ""), migrate.Journal{}, run("1")), has: "1", want: AwaitMigration, says: "has not begun, asked for by edge"},
		{about: "somebody else has asked", is: with(told(migrate.Listens, ""), migrate.Journal{}, run("x")), want: AwaitMigration},
		{about: "Azure does not answer yet", is: with(under, migrate.Journal{}, run("1")), has: "1", want: AwaitMigration, says: "waits for: n1 is Updating"},
		{about: "under way", is: with(under, begun(), run("1")), has: "1", want: AwaitMigration, says: "1 of 6 steps are done; next is Detach; waits for: n1 is Updating"},
		{about: "under way, and it was not asked for from here", is: with(under, begun(), migrate.Asked{}), want: AwaitMigration},
		{about: "under way, as what was told before is old", is: with(told(migrate.NotNeeded, ""), begun(), migrate.Asked{}), want: AwaitMigration, says: "it is under way"},
		{about: "ended", is: with(told(migrate.Ended, "1"), done, migrate.Asked{}), has: "1", want: EndMigration},
		{about: "ended, and not told yet", is: with(under, done, migrate.Asked{}), has: "1", want: EndMigration},
		{about: "nothing is Basic", is: told(migrate.NotNeeded, ""), want: EndMigration},
		{about: "nothing is Basic, and somebody has it stop", is: with(told(migrate.NotNeeded, ""), migrate.Journal{}, stop), want: EndMigration},
		{about: "an earlier one has ended, and another cannot start", is: with(told(migrate.Refused, "1", "ForeignRule"), done, migrate.Asked{}), has: "1", want: RefuseMigration, says: "ForeignRule"},
		{about: "stopped before it is asked for", is: with(told(migrate.Listens, ""), migrate.Journal{}, stop), want: RefuseMigration, says: "stopped it, asked for by jane: the shop is open"},
		{about: "stopped by somebody where no Weir speaks", is: Migration{Asked: stop}, want: RefuseMigration},
		{about: "stopped under way", is: with(under, begun(), stop), has: "1", want: RefuseMigration, says: "the shop is open"},
		{about: "taken back under way", is: with(under, begun(), undo), has: "1", want: RefuseMigration, says: "has it taken back, asked for by jane"},
		{about: "was taken back", is: with(told(migrate.TakenBack, "1"), undone, migrate.Asked{}), has: "1", want: RefuseMigration, says: "had it taken back, asked for by jane"},
		{about: "was taken back, and a person asks again", is: with(told(migrate.TakenBack, "1"), undone, migrate.Asked{}), has: "1", again: true, want: AskMigration},
		{about: "was taken back, and an older wish has never arrived", is: with(told(migrate.TakenBack, "x"), undone, migrate.Asked{}), has: "1", want: AskMigration},
		{about: "was taken back while it was watched", is: with(told(migrate.TakenBack, ""), undone, migrate.Asked{}), watched: true, want: RefuseMigration, says: "by jane"},
		{about: "was taken back while it was watched, and a person asks again", is: with(told(migrate.TakenBack, ""), undone, migrate.Asked{}), watched: true, again: true, want: AskMigration},
		{about: "given up while it was watched", is: with(told(migrate.GivenUp, ""), begun(), migrate.Asked{}), watched: true, want: AskMigration},
		{about: "was taken back before it was asked for", is: with(told(migrate.Listens, ""), undone, migrate.Asked{}), want: AskMigration},
		{about: "no SKU", is: told(migrate.NoSKU, ""), want: RefuseMigration, says: "loadBalancerSku"},
		{about: "refused", is: told(migrate.Refused, "2", "ForeignRule: r", "NATRule: n"), has: "2", want: RefuseMigration, says: "ForeignRule: r; NATRule: n"},
		{about: "refused while the link was away", is: told(migrate.Refused, "1", "ForeignRule"), has: "1", want: RefuseMigration},
		{about: "refused, and a person asks again", is: told(migrate.Refused, "1"), has: "1", again: true, want: AskMigration},
		{about: "refused after a person has asked again", is: told(migrate.Refused, "2"), has: "2", again: true, want: RefuseMigration},
		{about: "refused to somebody else", is: told(migrate.Refused, "x"), want: AskMigration},
		{about: "refused to nobody", is: told(migrate.Refused, ""), want: AskMigration},
		{about: "refused to somebody else while it was watched", is: Migration{Speaks: true, Told: migrate.Told{Word: migrate.Refused, Answers: &migrate.Wish{}}}, watched: true, want: AskMigration},
		{about: "given up", is: told(migrate.GivenUp, "2", "no"), has: "2", want: FailMigration, says: "no"},
		{about: "given up for an earlier attempt", is: told(migrate.GivenUp, "1"), has: "1", want: AskMigration},
		{about: "given up, and open", is: with(told(migrate.GivenUp, ""), begun(), migrate.Asked{}), want: AskMigration},
		{about: "heard, and nothing has come of it", is: told(migrate.Listens, "2"), has: "2", want: FailMigration},
	} {
		do, says := NextOfMigration(tt.is, MigrationStep{Mine: "2", Has: tt.has, Watched: tt.watched, Again: tt.again})
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
		is := Migration{Speaks: some(t, "speaks")}
		is.Told.Word = rapid.SampledFrom([]migrate.Word{migrate.Listens, migrate.NoSKU, migrate.NotNeeded, migrate.Refused, migrate.GivenUp, migrate.UnderWay, migrate.TakenBack, migrate.Ended}).Draw(t, "word")
		if some(t, "answered") {
			is.Told.Answers = &migrate.Wish{ID: ids.Draw(t, "answers")}
		}
		if some(t, "a journal") {
			is.Journal = begun()
			is.Journal.Done = some(t, "done")
		}
		if some(t, "a stop") {
			is.Asked.Stop = &migrate.Wish{Undo: some(t, "undo")}
		}
		if some(t, "a run") {
			is.Asked.Run = &migrate.Wish{ID: ids.Draw(t, "run")}
		}
		s := MigrationStep{Mine: "2", Has: ids.Draw(t, "has"), Watched: some(t, "watched"), Again: some(t, "again")}
		if do, _ := NextOfMigration(is, s); do != AskMigration {
			return
		}
		switch {
		case is.Asked.Stop != nil || is.Asked.Run != nil || !is.Speaks:
			t.Fatalf("asks of %+v", is)
		case is.Journal.Open() && is.Told.Word != migrate.GivenUp:
			t.Fatalf("asks for what is under way: %+v", is)
		}
		is.Told.Answers, s.Has = &migrate.Wish{ID: s.Mine}, s.Mine // requested and answered
		if do, _ := NextOfMigration(is, s); do == AskMigration {
			t.Fatalf("asks twice by one wish: %+v", is)
		}
	})
}
