// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/skumigration/phase"
)

// Migration is the recorded state of a target's migration to Standard load balancers.
type Migration struct {
	// Status is the latest report of the target's Weir, if there is one.
	Status    phase.Progress
	HasStatus bool

	Journal  phase.Journal
	Requests phase.UserRequests
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
	RequestMigration MigrationAction = "request"
	// WaitForMigration waits for the record to change.
	WaitForMigration MigrationAction = "wait"
	// FinishMigration succeeds: no Basic load balancer is left.
	FinishMigration MigrationAction = "finish"
	// FailMigration fails the attempt.
	FailMigration MigrationAction = "fail"
	// RejectMigration fails until a user requests another attempt.
	RejectMigration MigrationAction = "reject"
)

// NextMigrationAction returns the action, and why. Requests of the target's users take precedence.
func NextMigrationAction(migration Migration, s MigrationStep) (MigrationAction, string) {
	status, open := migration.Status, migration.Journal.IsOpen()
	ended := status.State == phase.ProgressNotNeeded || status.State == phase.ProgressDone ||
		migration.Journal.Done && status.State != phase.ProgressRejected && status.State != phase.ProgressFailed
	switch stop := migration.Requests.Stop; {
	case ended && !open:
		return FinishMigration, "no load balancer of the cluster is Basic any more"
	case stop != nil && stop.Undo:
		return RejectMigration, "it is being undone there, requested " + stop.String()
	case stop != nil:
		return RejectMigration, "it was stopped there, requested " + stop.String()
	case !migration.HasStatus:
		return WaitForMigration, "no Weir of a version that supports it has led there yet"
	case open && status.State != phase.ProgressFailed:
		return WaitForMigration, progressMessage(status)
	case status.State == phase.ProgressNoSKU:
		return RejectMigration, `azure.json there does not say "loadBalancerSku": "standard"`
	case migration.Requests.Run != nil:
		return WaitForMigration, appendWaits("the Weir there has not started it, requested "+migration.Requests.Run.String(), status)
	case s.RecordedID == "" && !s.WasRunning:
		return RequestMigration, ""
	}
	return migration.nextAfterRequest(s)
}

func (m Migration) nextAfterRequest(s MigrationStep) (MigrationAction, string) {
	isOurs := s.RecordedID != "" && m.Status.AnsweredRequest != nil && m.Status.AnsweredRequest.ID == s.RecordedID
	reason := strings.Join(m.Status.Reasons, "; ")
	switch {
	case isOurs && m.Status.State == phase.ProgressRejected && !s.isRepeat():
		return RejectMigration, "something keeps it from starting: " + reason
	case isOurs && m.Status.State == phase.ProgressFailed && s.RecordedID == s.RequestID:
		return FailMigration, "it was given up: " + reason
	case m.Journal.CompletedUndo != nil && (isOurs || s.WasRunning) && !s.isRepeat():
		return RejectMigration, "it was undone there, requested " + m.Journal.CompletedUndo.String()
	case isOurs && s.RecordedID == s.RequestID:
		return FailMigration, "it was requested, and has not started"
	}
	return RequestMigration, "" // or the request was lost
}

func progressMessage(status phase.Progress) string {
	if status.State != phase.ProgressRunning {
		return "it is under way"
	}
	return appendWaits(fmt.Sprintf("%d of %s are done; next is %s", status.StepsDone, humanize.FormatCount(status.Steps, "step"), status.Phase), status)
}

func appendWaits(text string, status phase.Progress) string {
	if status.State == phase.ProgressRunning && len(status.WaitReasons) > 0 {
		text += "; waits for: " + humanize.FormatList(status.WaitReasons, 5)
	}
	return text
}
