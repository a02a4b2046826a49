// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/words"
)

// Migration is what the record of a target shows of its migration to Standard load balancers.
type Migration struct {
	// Told is what the Weir there says; Speaks is false if none has said anything.
	Told   migrate.Told
	Speaks bool

	Journal migrate.Journal
	Asked   migrate.Asked
}

// MigrationStep is what is on record here of a step that migrates.
type MigrationStep struct {
	// Mine is the wish that this attempt would ask with.
	Mine string
	// Has is the wish that the step has on record, of this attempt or an earlier one, since it has its present
	// input; empty if it has none.
	Has string
	// Watched is whether it was under way before the step could ask.
	Watched bool
	// Again is whether a person has asked for this attempt after one that no other could mend.
	Again bool
}

// anew reports whether what was answered before is to be asked again.
func (s MigrationStep) anew() bool { return s.Again && s.Has != s.Mine }

// MigrationDo is what an attempt does about a migration.
type MigrationDo string

// What is done.
const (
	// AskMigration: the Weir there is asked to begin, by the wish Mine.
	AskMigration MigrationDo = "ask"
	// AwaitMigration: nothing, until the record shows something else.
	AwaitMigration MigrationDo = "await"
	// EndMigration: no load balancer there is Basic any more.
	EndMigration MigrationDo = "end"
	// FailMigration: the attempt has failed.
	FailMigration MigrationDo = "fail"
	// RefuseMigration: it has failed, and no other can mend it until a person asks for one.
	RefuseMigration MigrationDo = "refuse"
)

// NextOfMigration is what an attempt does about the migration of a target, and why, in words. What a person there wants
// counts before what is asked from here, and what is under way is never asked for.
func NextOfMigration(is Migration, s MigrationStep) (MigrationDo, string) {
	told, open := is.Told, is.Journal.Open()
	ended := told.Word == migrate.NotNeeded || told.Word == migrate.Ended ||
		is.Journal.Done && told.Word != migrate.Refused && told.Word != migrate.GivenUp
	switch stop := is.Asked.Stop; {
	case ended && !open:
		return EndMigration, "no load balancer of the cluster is Basic any more"
	case stop != nil && stop.Undo:
		return RefuseMigration, "somebody there has it taken back, asked for " + stop.String()
	case stop != nil:
		return RefuseMigration, "somebody there has stopped it, asked for " + stop.String()
	case !is.Speaks:
		return AwaitMigration, "no Weir of a version that can be asked has led there yet"
	case open && told.Word != migrate.GivenUp:
		return AwaitMigration, underWay(told)
	case told.Word == migrate.NoSKU:
		return RefuseMigration, `azure.json there does not say "loadBalancerSku": "standard"`
	case is.Asked.Run != nil:
		return AwaitMigration, waiting("the Weir there has not begun, asked for "+is.Asked.Run.String(), told)
	case s.Has == "" && !s.Watched:
		return AskMigration, ""
	}
	return is.answered(s)
}

// answered is what follows once nobody asks any more, and the step has.
func (is Migration) answered(s MigrationStep) (MigrationDo, string) {
	mine := s.Has != "" && is.Told.Answers != nil && is.Told.Answers.ID == s.Has
	why := strings.Join(is.Told.Reasons, "; ")
	switch {
	case mine && is.Told.Word == migrate.Refused && !s.anew():
		return RefuseMigration, "something keeps it from starting: " + why
	case mine && is.Told.Word == migrate.GivenUp && s.Has == s.Mine:
		return FailMigration, "it was given up: " + why
	case is.Journal.Undone != nil && (mine || s.Watched) && !s.anew():
		return RefuseMigration, "somebody there had it taken back, asked for " + is.Journal.Undone.String()
	case mine && s.Has == s.Mine:
		return FailMigration, "it was asked for, and has not begun"
	}
	return AskMigration, "" // also where the wish has never arrived
}

// underWay says how far it is.
func underWay(told migrate.Told) string {
	if told.Word != migrate.UnderWay {
		return "it is under way"
	}
	return waiting(fmt.Sprintf("%d of %s are done; next is %s", told.Done, words.Count(told.Steps, "step"), told.Phase), told)
}

// waiting is a text with what is waited for.
func waiting(text string, told migrate.Told) string {
	if told.Word == migrate.UnderWay && len(told.Waits) > 0 {
		text += "; waits for: " + words.List(told.Waits, 5)
	}
	return text
}
