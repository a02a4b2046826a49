// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/migrate"
)

const keyMigration = "basic-to-standard"

const keyTold = "basic-to-standard-told"

// Migration stores the migration journal. It implements migration.Store.
type Migration struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
}

// Migration returns the journal. An unreadable journal is an error, because there is no other copy.
func (r Record) Migration() (migrate.Journal, error) {
	if r.object == nil {
		return migrate.Journal{}, nil
	}
	j, err := migrate.Parse(r.object.Data[keyMigration])
	if err != nil {
		return migrate.Journal{}, fmt.Errorf("ConfigMap %s, key %s: %w", view.Key(r.Namespace, Name), keyMigration, err)
	}
	return j, nil
}

// Read implements migration.Store.
func (m Migration) Read(ctx context.Context) (migrate.Journal, migrate.Asked, error) {
	r, err := Read(ctx, m.Reader, m.Namespace)
	if err != nil {
		return migrate.Journal{}, migrate.Asked{}, err
	}
	j, err := r.Migration()
	return j, r.Asked(), err
}

// Keep implements migration.Store.
func (m Migration) Keep(ctx context.Context, j migrate.Journal) error {
	return m.set(ctx, func(Record) map[string]string { return map[string]string{keyMigration: migrate.Format(j)} })
}

// Seal implements migration.Store.
func (m Migration) Seal(ctx context.Context, kept, next migrate.Journal) (bool, error) {
	sealed := false
	err := m.set(ctx, func(r Record) map[string]string {
		is, err := r.Migration()
		if sealed = err == nil && migrate.Format(is) == migrate.Format(kept) && r.Asked().Stop == nil; !sealed {
			return nil
		}
		return map[string]string{keyMigration: migrate.Format(next)}
	})
	return sealed && err == nil, err
}

// Undone implements migration.Store.
func (m Migration) Undone(ctx context.Context, j migrate.Journal) (bool, error) {
	wanted := false
	err := m.set(ctx, func(r Record) map[string]string {
		stop := r.Asked().Stop
		if wanted = stop != nil && stop.Undo; !wanted {
			return nil
		}
		report := migrate.Tell(migrate.TakenBack, stop.String())
		return map[string]string{keyMigration: migrate.Format(j), keyAsked: "", keyTold: r.answered(report)}
	})
	return wanted && err == nil, err
}

// Answered implements migration.Store.
func (m Migration) Answered(ctx context.Context) error {
	return m.set(ctx, func(r Record) map[string]string {
		requests := r.Asked()
		if requests.Run == nil {
			return nil
		}
		report, _ := r.Told()
		data := map[string]string{keyTold: r.answered(report)}
		requests.Run = nil
		data[keyAsked] = migrate.FormatAsked(requests)
		return data
	})
}

// Say stores this process's report on the migration.
func (m Migration) Say(ctx context.Context, next migrate.Told) error {
	return m.set(ctx, func(r Record) map[string]string {
		previous, known := r.Told()
		now := migrate.FormatTold(previous.Then(next))
		if known && now == migrate.FormatTold(previous) {
			return nil
		}
		return map[string]string{keyTold: now}
	})
}

// Told returns the leader's report on the migration; false if there is none.
func (r Record) Told() (migrate.Told, bool) {
	if r.object == nil {
		return migrate.Told{}, false
	}
	return migrate.ParseTold(r.object.Data[keyTold])
}

// answered formats a report as the answer to the pending request.
func (r Record) answered(report migrate.Told) string {
	if previous, _ := r.Told(); report.Answers == nil {
		report.Answers = previous.Answers
	}
	if run := r.Asked().Run; run != nil {
		report.Answers = run
	}
	if report.Word == "" { // the last report was not written
		report.Word = migrate.Listens
	}
	return migrate.FormatTold(report)
}

func (m Migration) set(ctx context.Context, of func(Record) map[string]string) error {
	for range tries {
		r, err := Read(ctx, m.Reader, m.Namespace)
		if err != nil {
			return err
		}
		data := of(r)
		if len(data) == 0 {
			return nil
		}
		err = r.set(ctx, m.Writer, data)
		if err == nil || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", view.Key(m.Namespace, Name))
}
