// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/skumigration/phase"
)

// Event reasons of Services.
const (
	ReasonMigrating       = "MigratingLoadBalancer"
	ReasonMigrated        = "MigratedLoadBalancer"
	ReasonAddressLost     = "AddressLost"
	ReasonAddressRejected = "AddressRefused"
	ReasonUndone          = "MigrationUndone"
)

func (m *Migration) recordStart(j phase.Journal, snapshot phase.Snapshot, services []phase.Service) {
	m.forEachService(j, snapshot, services, func(name string, stay, move []netip.Addr) {
		m.cfg.RecordEvent(name, false, ReasonMigrating, fmt.Sprintf("Its load balancer is Basic, and becomes a Standard one. It is not reached for some minutes, and keeps %s", joinAddresses(append(stay, move...))))
	})
}

// updateServiceStatus uses the status because it outlives events and this process. The Service controller replaces
// it after the migration.
func updateServiceStatus(ctx context.Context, cfg Config, j phase.Journal, snapshot phase.Snapshot, services []phase.Service, progress string) {
	if cfg.UpdateStatus == nil {
		return
	}
	for _, s := range services {
		stay, move := j.ServiceAddresses(s, snapshot)
		if len(stay)+len(move) == 0 {
			continue
		}
		text := fmt.Sprintf("Its load balancer is Basic, and becomes a Standard one with %s: %s. weir migrate status shows what it waits for", joinAddresses(append(stay, move...)), progress)
		if err := cfg.UpdateStatus(ctx, s.Name, text); err != nil {
			cfg.Log.Warn("migration to Standard load balancers: a Service does not show it", "service", s.Name, "err", err)
		}
	}
}

func (m *Migration) recordCompletion(j phase.Journal, snapshot phase.Snapshot, services []phase.Service) {
	m.forEachService(j, snapshot, services, func(name string, stored, lost []netip.Addr) {
		if len(stored) > 0 {
			m.cfg.RecordEvent(name, false, ReasonMigrated, fmt.Sprintf("A Standard load balancer has %s; its rules and members follow", joinAddresses(stored)))
		}
		claims := j.FilterClaims(lost)
		lost = slices.DeleteFunc(slices.Clone(lost), func(ip netip.Addr) bool { return slices.Contains(claims, ip) })
		if len(claims) > 0 {
			m.cfg.RecordEvent(name, true, ReasonAddressRejected, fmt.Sprintf("Azure refuses %s to its Standard load balancer, and it gets no other address: free what weir migrate status names, or agree to another address with weir migrate give-up %s", joinAddresses(claims), claims[0]))
		}
		if len(lost) > 0 {
			m.cfg.RecordEvent(name, true, ReasonAddressLost, fmt.Sprintf("%s could not be kept on a Standard load balancer: weir migrate status shows why", joinAddresses(lost)))
		}
	})
}

func (m *Migration) recordUndo(j phase.Journal, snapshot phase.Snapshot, services []phase.Service) {
	m.forEachService(j, snapshot, services, func(name string, stay, move []netip.Addr) {
		m.cfg.RecordEvent(name, false, ReasonUndone, fmt.Sprintf("The migration was undone: its load balancer remains Basic, with %s, and machines are in its pools again", joinAddresses(append(stay, move...))))
	})
}

func (m *Migration) forEachService(j phase.Journal, snapshot phase.Snapshot, services []phase.Service, record func(name string, stored, lost []netip.Addr)) {
	if m.cfg.RecordEvent == nil {
		return
	}
	for _, s := range services {
		if stored, lost := j.ServiceAddresses(s, snapshot); len(stored)+len(lost) > 0 {
			record(s.Name, stored, lost)
		}
	}
}

func joinAddresses(addresses []netip.Addr) string {
	var text []string
	for _, ip := range addresses {
		text = append(text, ip.String())
	}
	return strings.Join(text, ", ")
}
