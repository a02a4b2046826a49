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
	// Status is the latest report of the target's Weir, if there is one.
	Status    migrate.Progress
	HasStatus bool

	Journal  migrate.Journal
	Requests migrate.UserRequests
}

// MigrationStep is the recorded state of a step that migrates.
type MigrationStep struct {
	// RequestID is the request ID of this attempt.
	RequestID string
	// RecordedID is the recorded request ID for the current input; empty if none.
	RecordedID string
	// WasRunning is set if the migration was running before the request.
	WasRunning bool
	// Retry is set if a user retries after a permanent failure.
	Retry bool
}

func (s MigrationStep) isRepeat() bool { return s.Retry && s.RecordedID != s.RequestID }

// MigrationAction is the action for a migration.
type MigrationAction string

// Actions.
const (
	// RequestMigration requests the migration.
	RequestMigration MigrationAction = "ask"
	// WaitForMigration waits for the record to change.
	WaitForMigration MigrationAction = "await"
	// FinishMigration succeeds: no Basic load balancer is left.
	FinishMigration MigrationAction = "end"
	// FailMigration fails the attempt.
	FailMigration MigrationAction = "fail"
	// RejectMigration fails until a user requests another attempt.
	RejectMigration MigrationAction = "refuse"
)

// NextMigrationAction returns the action, and why. Requests of the target's users take precedence.
func NextMigrationAction(is Migration, s MigrationStep) (MigrationAction, string) {
	status, open := is.Status, is.Journal.IsOpen()
	ended := status.State == migrate.ProgressNotNeeded || status.State == migrate.ProgressDone ||
		is.Journal.Done && status.State != migrate.ProgressRejected && status.State != migrate.ProgressFailed
	switch stop := is.Requests.Stop; {
	case ended && !open:
		return FinishMigration, "no load balancer of the cluster is Basic any more"
	case stop != nil && stop.Undo:
		return RejectMigration, "somebody there has it taken back, asked for " + stop.String()
	case stop != nil:
		return RejectMigration, "somebody there has stopped it, asked for " + stop.String()
	case !is.HasStatus:
		return WaitForMigration, "no Weir of a version that can be asked has led there yet"
	case open && status.State != migrate.ProgressFailed:
		return WaitForMigration, progressMessage(status)
	case status.State == migrate.ProgressNoSKU:
		return RejectMigration, `azure.json there does not say "loadBalancerSku": "standard"`
	case is.Requests.Run != nil:
		return WaitForMigration, appendWaits("the Weir there has not begun, asked for "+is.Requests.Run.String(), status)
	case s.RecordedID == "" && !s.WasRunning:
		return RequestMigration, ""
	}
	return is.nextAfterRequest(s)
}

func (is Migration) nextAfterRequest(s MigrationStep) (MigrationAction, string) {
	isOurs := s.RecordedID != "" && is.Status.AnsweredRequest != nil && is.Status.AnsweredRequest.ID == s.RecordedID
	why := strings.Join(is.Status.Reasons, "; ")
	switch {
	case isOurs && is.Status.State == migrate.ProgressRejected && !s.isRepeat():
		return RejectMigration, "something keeps it from starting: " + why
	case isOurs && is.Status.State == migrate.ProgressFailed && s.RecordedID == s.RequestID:
		return FailMigration, "it was given up: " + why
	case is.Journal.CompletedUndo != nil && (isOurs || s.WasRunning) && !s.isRepeat():
		return RejectMigration, "somebody there had it taken back, asked for " + is.Journal.CompletedUndo.String()
	case isOurs && s.RecordedID == s.RequestID:
		return FailMigration, "it was asked for, and has not begun"
	}
	return RequestMigration, "" // or the request was lost
}

func progressMessage(status migrate.Progress) string {
	if status.State != migrate.ProgressRunning {
		return "it is under way"
	}
	return appendWaits(fmt.Sprintf("%d of %s are done; next is %s", status.StepsDone, words.FormatCount(status.Steps, "step"), status.Phase), status)
}

func appendWaits(text string, status migrate.Progress) string {
	if status.State == migrate.ProgressRunning && len(status.WaitReasons) > 0 {
		text += "; waits for: " + words.FormatList(status.WaitReasons, 5)
	}
	return text
}
