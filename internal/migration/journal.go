// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/migrate"
)

// unreadable lets go of a journal that nobody can read where nothing is Basic. Elsewhere it may hold the
// addresses that others would take.
func (m *Migration) unreadable(ctx context.Context, err error) error {
	m.began = true // for all that is known
	services := m.cfg.Services()
	seen, failed := m.read(ctx, migrate.Journal{}, services)
	if failed != nil {
		return failed
	}
	err = fmt.Errorf("%w: delete the key if no migration was begun", err)
	if migrate.Stock(migrate.Journal{}, seen, services, m.cfg.Location).Open() {
		return err
	}
	m.cfg.Log.Error("no load balancer of the cluster is Basic, and nothing is migrated", "err", err)
	return nil
}

// strange is an error if a journal that is open has a load balancer that is not the cluster's: names of azure.json
// have changed since.
func (m *Migration) strange(j migrate.Journal) error {
	for _, b := range j.Balancers {
		if j.Open() && !m.ours(b.ID) {
			return fmt.Errorf("the journal of the migration has load balancer %s of resource group %s, which is not the cluster's any more: put the names in azure.json back, or delete the key",
				b.ID.Name, b.ID.ResourceGroup)
		}
	}
	return nil
}

// keep writes the journal down if it says more than what is kept.
func (m *Migration) keep(ctx context.Context, kept, j migrate.Journal) error {
	m.journal = j
	if migrate.Format(kept) == migrate.Format(j) {
		return nil
	}
	return m.cfg.Store.Keep(ctx, j)
}

// ready writes down what has to be on record before what comes next, and reports whether that may be written: after a
// journal that is final there is no way back, so nobody may have asked for one.
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
