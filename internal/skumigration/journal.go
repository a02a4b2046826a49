// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/skumigration/phase"
)

// handleInvalidJournal ignores an invalid journal if nothing is Basic. Otherwise the journal may hold
// addresses that others would take.
func (m *Migration) handleInvalidJournal(ctx context.Context, err error) error {
	m.mustComplete = true // assume so
	services := m.cfg.Services()
	snapshot, failed := m.readSnapshot(ctx, phase.Journal{}, services)
	if failed != nil {
		return failed
	}
	err = fmt.Errorf("%w: delete the key if no migration was begun", err)
	if phase.BuildJournal(phase.Journal{}, snapshot, services, m.cfg.Location).IsOpen() {
		return err
	}
	m.cfg.Log.Error("no load balancer of the cluster is Basic, and nothing is migrated", "err", err)
	return nil
}

// checkLoadBalancers rejects an open journal of another cluster: names in azure.json have changed.
func (m *Migration) checkLoadBalancers(j phase.Journal) error {
	for _, b := range j.LoadBalancers {
		if j.IsOpen() && !m.isManaged(b.ID) {
			return fmt.Errorf("the journal of the migration has load balancer %s of resource group %s, which is not the cluster's any more: put the names in azure.json back, or delete the key",
				b.ID.Name, b.ID.ResourceGroup)
		}
	}
	return nil
}

// saveJournal writes only changes.
func (m *Migration) saveJournal(ctx context.Context, stored, j phase.Journal) error {
	m.journal = j
	if phase.FormatJournal(stored) == phase.FormatJournal(j) {
		return nil
	}
	return m.cfg.Store.SaveJournal(ctx, j)
}

// recordBefore saves the journal before the next writes, and reports whether they may be sent. A final
// journal is saved only if no undo was requested.
func (m *Migration) recordBefore(ctx context.Context, j, next phase.Journal) (bool, error) {
	if next.FinalReason == "" || j.FinalReason != "" {
		return true, m.saveJournal(ctx, j, next)
	}
	saved, err := m.cfg.Store.SaveFinalJournal(ctx, j, next)
	if saved {
		m.journal = next
	}
	return saved, err
}

func (m *Migration) saveTrafficStopped(ctx context.Context) error {
	j := m.journal
	j.TrafficStopped = j.TrafficStopped || m.trafficStopped
	m.mustComplete = m.mustComplete || m.trafficStopped
	return m.saveJournal(ctx, m.journal, j)
}
