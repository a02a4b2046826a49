// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/skumigration/phase"
)

const keyMigration = "basic-to-standard"

const keyReport = "basic-to-standard-report"

// Migration stores the migration journal. It implements skumigration.Store.
type Migration struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
}

// MigrationJournal returns the journal. An unreadable journal is an error, because there is no other copy.
func (r Record) MigrationJournal() (phase.Journal, error) {
	if r.object == nil {
		return phase.Journal{}, nil
	}
	j, err := phase.ParseJournal(r.object.Data[keyMigration])
	if err != nil {
		return phase.Journal{}, fmt.Errorf("ConfigMap %s, key %s: %w", metadata.Key(r.Namespace, Name), keyMigration, err)
	}
	return j, nil
}

// Load implements skumigration.Store.
func (m Migration) Load(ctx context.Context) (phase.Journal, phase.UserRequests, error) {
	r, err := Read(ctx, m.Reader, m.Namespace)
	if err != nil {
		return phase.Journal{}, phase.UserRequests{}, err
	}
	j, err := r.MigrationJournal()
	return j, r.MigrationRequests(), err
}

// SaveJournal implements skumigration.Store.
func (m Migration) SaveJournal(ctx context.Context, j phase.Journal) error {
	return m.updateKeys(ctx, func(Record) map[string]string { return map[string]string{keyMigration: phase.FormatJournal(j)} })
}

// SaveFinalJournal implements skumigration.Store.
func (m Migration) SaveFinalJournal(ctx context.Context, kept, next phase.Journal) (bool, error) {
	saved := false
	err := m.updateKeys(ctx, func(r Record) map[string]string {
		journal, err := r.MigrationJournal()
		if saved = err == nil && phase.FormatJournal(journal) == phase.FormatJournal(kept) && r.MigrationRequests().Stop == nil; !saved {
			return nil
		}
		return map[string]string{keyMigration: phase.FormatJournal(next)}
	})
	return saved && err == nil, err
}

// CompleteUndo implements skumigration.Store.
func (m Migration) CompleteUndo(ctx context.Context, j phase.Journal) (bool, error) {
	wanted := false
	err := m.updateKeys(ctx, func(r Record) map[string]string {
		stop := r.MigrationRequests().Stop
		if wanted = stop != nil && stop.Undo; !wanted {
			return nil
		}
		report := phase.NewProgress(phase.ProgressUndone, stop.String())
		return map[string]string{keyMigration: phase.FormatJournal(j), keyRequests: "", keyReport: r.formatReport(report)}
	})
	return wanted && err == nil, err
}

// ClearStartRequest implements skumigration.Store.
func (m Migration) ClearStartRequest(ctx context.Context) error {
	return m.updateKeys(ctx, func(r Record) map[string]string {
		requests := r.MigrationRequests()
		if requests.Run == nil {
			return nil
		}
		report, _ := r.MigrationReport()
		data := map[string]string{keyReport: r.formatReport(report)}
		requests.Run = nil
		data[keyRequests] = phase.FormatUserRequests(requests)
		return data
	})
}

// SaveReport stores this process's report on the migration.
func (m Migration) SaveReport(ctx context.Context, next phase.Progress) error {
	return m.updateKeys(ctx, func(r Record) map[string]string {
		previous, known := r.MigrationReport()
		current := phase.FormatProgress(previous.Merge(next))
		if known && current == phase.FormatProgress(previous) {
			return nil
		}
		return map[string]string{keyReport: current}
	})
}

// MigrationReport returns the leader's report on the migration; false if there is none.
func (r Record) MigrationReport() (phase.Progress, bool) {
	if r.object == nil {
		return phase.Progress{}, false
	}
	return phase.ParseProgress(r.object.Data[keyReport])
}

// formatReport formats a report as the answer to the pending request.
func (r Record) formatReport(report phase.Progress) string {
	if previous, _ := r.MigrationReport(); report.AnsweredRequest == nil {
		report.AnsweredRequest = previous.AnsweredRequest
	}
	if run := r.MigrationRequests().Run; run != nil {
		report.AnsweredRequest = run
	}
	if report.State == "" { // the last report was not written
		report.State = phase.ProgressIdle
	}
	return phase.FormatProgress(report)
}

func (m Migration) updateKeys(ctx context.Context, of func(Record) map[string]string) error {
	for range maxTries {
		r, err := Read(ctx, m.Reader, m.Namespace)
		if err != nil {
			return err
		}
		data := of(r)
		if len(data) == 0 {
			return nil
		}
		err = r.writeKeys(ctx, m.Writer, data)
		if err == nil || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", metadata.Key(m.Namespace, Name))
}
