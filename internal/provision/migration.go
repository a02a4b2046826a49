// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/words"
)

// Migration is the recorded state of a target's migration to Standard load balancers.
type Migration struct {
	// Told is the latest report of the target's Weir, if there is one.
	Told   migrate.Told
	Speaks bool

	Journal migrate.Journal
	Asked   migrate.Asked
}

// MigrationStep is the recorded state of a step that migrates.
type MigrationStep struct {
	// Mine is the request ID of this attempt.
	Mine string
	// Has is the recorded request ID for the current input; empty if none.
	Has string
	// Watched is set if the migration was running before the request.
	Watched bool
	// Again is set if a user retries after a permanent failure.
	Again bool
}

func (s MigrationStep) anew() bool { return s.Again && s.Has != s.Mine }

// MigrationDo is the action for a migration.
type MigrationDo string

// Actions.
const (
	// AskMigration requests the migration.
	AskMigration MigrationDo = "ask"
	// AwaitMigration waits for the record to change.
	AwaitMigration MigrationDo = "await"
	// EndMigration succeeds: no Basic load balancer is left.
	EndMigration MigrationDo = "end"
	// FailMigration fails the attempt.
	FailMigration MigrationDo = "fail"
	// RefuseMigration fails until a user requests another attempt.
	RefuseMigration MigrationDo = "refuse"
)

// NextOfMigration returns the action, and why. Requests of the target's users take precedence.
func NextOfMigration(is Migration, s MigrationStep) (MigrationDo, string) {
	status, open := is.Told, is.Journal.Open()
	ended := status.Word == migrate.NotNeeded || status.Word == migrate.Ended ||
		is.Journal.Done && status.Word != migrate.Refused && status.Word != migrate.GivenUp
	switch stop := is.Asked.Stop; {
	case ended && !open:
		return EndMigration, "no load balancer of the cluster is Basic any more"
	case stop != nil && stop.Undo:
		return RefuseMigration, "somebody there has it taken back, asked for " + stop.String()
	case stop != nil:
		return RefuseMigration, "somebody there has stopped it, asked for " + stop.String()
	case !is.Speaks:
		return AwaitMigration, "no Weir of a version that can be asked has led there yet"
	case open && status.Word != migrate.GivenUp:
		return AwaitMigration, underWay(status)
	case status.Word == migrate.NoSKU:
		return RefuseMigration, `azure.json there does not say "loadBalancerSku": "standard"`
	case is.Asked.Run != nil:
		return AwaitMigration, waiting("the Weir there has not begun, asked for "+is.Asked.Run.String(), status)
	case s.Has == "" && !s.Watched:
		return AskMigration, ""
	}
	return is.answered(s)
}

func (is Migration) answered(s MigrationStep) (MigrationDo, string) {
	isOurs := s.Has != "" && is.Told.Answers != nil && is.Told.Answers.ID == s.Has
	why := strings.Join(is.Told.Reasons, "; ")
	switch {
	case isOurs && is.Told.Word == migrate.Refused && !s.anew():
		return RefuseMigration, "something keeps it from starting: " + why
	case isOurs && is.Told.Word == migrate.GivenUp && s.Has == s.Mine:
		return FailMigration, "it was given up: " + why
	case is.Journal.Undone != nil && (isOurs || s.Watched) && !s.anew():
		return RefuseMigration, "somebody there had it taken back, asked for " + is.Journal.Undone.String()
	case isOurs && s.Has == s.Mine:
		return FailMigration, "it was asked for, and has not begun"
	}
	return AskMigration, "" // or the request was lost
}

func underWay(status migrate.Told) string {
	if status.Word != migrate.UnderWay {
		return "it is under way"
	}
	return waiting(fmt.Sprintf("%d of %s are done; next is %s", status.Done, words.Count(status.Steps, "step"), status.Phase), status)
}

func waiting(text string, status migrate.Told) string {
	if status.Word == migrate.UnderWay && len(status.Waits) > 0 {
		text += "; waits for: " + words.List(status.Waits, 5)
	}
	return text
}
