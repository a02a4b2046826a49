// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// networkID is the virtual network of all pools.
const networkID = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet"

// poolNamed returns a pool by name. The caller holds s.mu.
func (s *Stage) poolNamed(name string) *pool {
	for _, k := range s.pools {
		if k.id.Name == name {
			return k
		}
	}
	return nil
}

// sortedPools returns the pools by name. The caller holds s.mu.
func (s *Stage) sortedPools() []*pool {
	return slices.SortedFunc(maps.Values(s.pools), func(a, b *pool) int { return strings.Compare(a.id.Name, b.id.Name) })
}

// azureAddresses returns a pool's current addresses in Azure, and whether the pool exists.
func (s *Stage) azureAddresses(k *pool) ([]lb.Address, bool) {
	l := s.readSnapshot(k)
	return l.addresses, l.exists
}

// hasFailedWrite reports whether the last write of a pool failed, so its content is not in effect.
func (s *Stage) hasFailedWrite(k *pool) bool { return s.readSnapshot(k).writeFailed }

// snapshot is a snapshot of a pool in Azure.
type snapshot struct {
	addresses []lb.Address
	// Addresses added and addresses set Down by Weir, according to Azure's log.
	addedByWeir, downByWeir map[netip.Addr]bool
	exists                  bool
	// writeFailed: the last write failed.
	writeFailed bool
	at          time.Time
	writes      int // Azure writes at the time of the snapshot
}

// stableTime is how long a write can still change the state.
const stableTime = 10 * time.Second

// readSnapshot returns a snapshot of a pool, cached because reads are expensive.
func (s *Stage) readSnapshot(k *pool) snapshot {
	now := time.Now()
	if l, ok := s.snapshots[k]; ok && l.writes == s.writes && (l.at.Equal(now) || l.at.Sub(s.lastWriteAt) > stableTime) {
		return l
	}
	raw, ok := s.emulator.Get(k.id.String())
	body := readPool(raw)
	l := snapshot{addresses: body.decodeAddresses(), exists: ok, writeFailed: body.Properties.ProvisioningState == "Failed", at: now, writes: s.writes}
	l.addedByWeir, l.downByWeir = s.weirAddresses(k)
	s.snapshots[k] = l
	return l
}

// invalidateSnapshots invalidates the snapshots because of a write. The caller holds s.mu.
func (s *Stage) invalidateSnapshots() {
	s.writes++
	s.lastWriteAt = time.Now()
}

// desiredAddresses returns a pool's desired addresses without foreign ones. The caller holds s.mu.
func (s *Stage) desiredAddresses(k *pool) []lb.Address {
	if b := s.cluster.bindings[k.id.Name]; b != nil {
		return s.cluster.desiredMembers(b)
	}
	return nil
}

// missingForeign lists lost or changed foreign addresses, or "" if there are none or no pool
// exists. The caller holds s.mu.
func (s *Stage) missingForeign(k *pool) string {
	held, ok := s.azureAddresses(k)
	if !ok {
		return ""
	}
	var missing []string
	for _, f := range k.foreign {
		if !slices.Contains(held, f) {
			missing = append(missing, f.Name+"="+f.IP.String())
		}
	}
	return strings.Join(missing, " ")
}

// outOfSyncReason describes how a pool differs from the desired and foreign addresses, or "". The caller
// holds s.mu.
func (s *Stage) outOfSyncReason(k *pool) string {
	held, ok := s.azureAddresses(k)
	if !ok {
		return "it does not exist"
	}
	var want, got []netip.Addr
	for _, a := range append(s.foreignAddresses(k), s.desiredAddresses(k)...) {
		want = append(want, a.IP)
	}
	for _, a := range held {
		got = append(got, a.IP)
	}
	slices.SortFunc(want, netip.Addr.Compare)
	slices.SortFunc(got, netip.Addr.Compare)
	want = slices.Compact(want)
	switch same := slices.Equal(got, want); {
	case same && s.hasFailedWrite(k) && !s.hasNoMembers(k):
		return "it holds what it has to, and its last write has failed"
	case same:
		return s.wrongAdminStates(k, held)
	}
	return fmt.Sprintf("it holds %v and has to hold %v", got, want)
}

// hasNoMembers reports whether a pool has neither desired nor recorded addresses. After a failed
// load balancer write, nothing retries such a pool. The caller holds s.mu.
func (s *Stage) hasNoMembers(k *pool) bool {
	b := s.cluster.bindings[k.id.Name]
	if b == nil || s.process == nil || len(s.desiredAddresses(k)) > 0 {
		return false
	}
	on := s.process.statusEntries[b.ref]
	return len(on.written)+len(on.down) == 0
}

// wrongAdminStates lists node addresses with a wrong admin state, or "". The caller holds s.mu.
func (s *Stage) wrongAdminStates(k *pool, held []lb.Address) string {
	if !s.opts.AdminState {
		return ""
	}
	want := map[netip.Addr]bool{}
	for _, a := range s.desiredAddresses(k) {
		want[a.IP] = a.AdminState == lb.Down
	}
	var failures []string
	for _, a := range held {
		toBe, managed := want[a.IP]
		isDown := a.AdminState == lb.Down
		if k.foreignDown[a.IP] && !isDown {
			failures = append(failures, fmt.Sprintf("%s was set Down by another client, and is not any more", a.IP))
		}
		switch byWeir := s.readSnapshot(k).downByWeir[a.IP]; {
		case byWeir && !toBe && !k.orphaned.down[a.IP]:
			failures = append(failures, fmt.Sprintf("%s was set Down by Weir, and its node does not drain", a.IP))
		case managed && toBe && !isDown:
			failures = append(failures, fmt.Sprintf("%s is not Down, and its node drains", a.IP))
		}
	}
	return strings.Join(failures, ", ")
}

// updateTimers records since when a pool holds undesired addresses or is out of sync. The caller holds
// s.mu.
func (s *Stage) updateTimers(k *pool) {
	s.pruneOrphaned(k)
	s.updateExtra(k)
	s.pruneForeignDown(k)
	if until := latest(s.gatesOpenAt(k), latest(k.rejectedUntil, k.excusedUntil)); until.After(time.Now()) {
		k.faultEnd = latest(k.faultEnd, until)
	}
	wanted := membership.Fingerprint(s.desiredAddresses(k))
	switch inSync := k.deleted || s.outOfSyncReason(k) == ""; {
	case inSync:
		k.outOfSyncSince = time.Time{}
	case k.outOfSyncSince.IsZero() || wanted != k.membershipHash:
		k.outOfSyncSince = time.Now()
		if k.changedAt.IsZero() {
			k.changedAt = k.outOfSyncSince
		}
	}
	k.membershipHash = wanted
}

func (s *Stage) updateExtra(k *pool) {
	held, _ := s.azureAddresses(k)
	wanted := map[netip.Addr]bool{}
	for _, a := range append(s.foreignAddresses(k), s.desiredAddresses(k)...) {
		wanted[a.IP] = true
	}
	now := map[string]time.Time{}
	for _, a := range held {
		ip := a.IP.String()
		switch since, known := k.extraSince[ip]; {
		case wanted[a.IP]:
		case known:
			now[ip] = since
		default:
			now[ip] = time.Now()
		}
	}
	k.extraSince = now
}

// formatPool formats a pool's content for the trace: managed members by name, then foreign ones.
func (s *Stage) formatPool(k *pool) string {
	held, ok := s.azureAddresses(k)
	if !ok {
		return "not there"
	}
	var managed, foreign []string
	for _, a := range held {
		if a.AdminState == lb.Down {
			a.Name += "(Down)"
		}
		if slices.ContainsFunc(k.foreign, func(f lb.Address) bool { return f.IP == a.IP }) {
			foreign = append(foreign, a.Name)
		} else {
			managed = append(managed, a.Name)
		}
	}
	slices.Sort(managed)
	slices.Sort(foreign)
	text := "holds " + strings.Join(managed, " ")
	if len(managed) == 0 {
		text = "holds none of ours"
	}
	if len(foreign) > 0 {
		text += ", foreign " + strings.Join(foreign, " ")
	}
	return text
}

// isIdle reports whether nothing is queued or in progress.
func (s *Stage) isIdle(p *process) bool {
	return p != nil && p.updater.Backlog().OldestQueuedAt.IsZero()
}
