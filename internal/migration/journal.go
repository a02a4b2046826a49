// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/migrate"
)

// unreadable ignores an invalid journal if nothing is Basic. Otherwise the journal may hold
// addresses that others would take.
func (m *Migration) unreadable(ctx context.Context, err error) error {
	m.began = true // assume so
	services := m.cfg.Services()
	snapshot, failed := m.read(ctx, migrate.Journal{}, services)
	if failed != nil {
		return failed
	}
	err = fmt.Errorf("%w: delete the key if no migration was begun", err)
	if migrate.Stock(migrate.Journal{}, snapshot, services, m.cfg.Location).Open() {
		return err
	}
	m.cfg.Log.Error("no load balancer of the cluster is Basic, and nothing is migrated", "err", err)
	return nil
}

// strange rejects an open journal of another cluster: names in azure.json have changed.
func (m *Migration) strange(j migrate.Journal) error {
	for _, b := range j.Balancers {
		if j.Open() && !m.ours(b.ID) {
			return fmt.Errorf("the journal of the migration has load balancer %s of resource group %s, which is not the cluster's any more: put the names in azure.json back, or delete the key",
				b.ID.Name, b.ID.ResourceGroup)
		}
	}
	return nil
}

// keep writes only changes.
func (m *Migration) keep(ctx context.Context, stored, j migrate.Journal) error {
	m.journal = j
	if migrate.Format(stored) == migrate.Format(j) {
		return nil
	}
	return m.cfg.Store.Keep(ctx, j)
}

// ready saves the journal before the next writes, and reports whether they may be sent. A final
// journal is saved only if no undo was requested.
func (m *Migration) ready(ctx context.Context, j, next migrate.Journal) (bool, error) {
	if next.Final == "" || j.Final != "" {
		return true, m.keep(ctx, j, next)
	}
	sealed, err := m.cfg.Store.Seal(ctx, j, next)
	if sealed {
		m.journal = next
	}
	return sealed, err
}

func (m *Migration) keepApart(ctx context.Context) error {
	j := m.journal
	j.Apart = j.Apart || m.apart
	m.began = m.began || m.apart
	return m.keep(ctx, m.journal, j)
}
