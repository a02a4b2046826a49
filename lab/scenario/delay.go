// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"net/netip"
	"slices"
	"time"
)

// statusWriteTimeout is the write timeout of weir-controller's status store.
const statusWriteTimeout = 10 * time.Second

var errConflict = errors.New("another process has recorded addresses meanwhile")

// writeEntryAfter delivers a ledger write to the API server after a delay, even if its sender is dead. The
// server rejects it if the entry changed.
func (p *process) writeEntryAfter(b *backendPool, next statusEntry, by time.Duration) error {
	s, landed := p.stage, make(chan error, 1)
	s.mu.Lock()
	version, closing := p.versions[b.ref], s.closed
	s.mu.Unlock()
	s.runLater(func() {
		waitFor(by, closing)
		landed <- p.applyStaleEntry(b, next, version)
	})
	late := errStatusWrite
	timer := time.NewTimer(statusWriteTimeout)
	defer timer.Stop()
	select {
	case late = <-landed:
	case <-timer.C:
	case <-p.ctx.Done():
	}
	p.waitAllRunning()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.killed:
		return errProcessKilled
	case late != nil && !p.isOldLeader:
		return p.recordWriteFailure(b, "record is late")
	case late != nil:
		return late
	}
	p.setEntry(b, next)
	return nil
}

func (p *process) applyStaleEntry(b *backendPool, next statusEntry, version int) error {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.counts["record"]++
	if b.version != version {
		s.addLine(b.pool.Name, "a late record of %s is refused: its version is old", p.name)
		return errStatusWrite
	}
	s.addLine(b.pool.Name, "a late record of %s arrives", p.name)
	p.storeEntry(b, next)
	return nil
}

// mergeConcurrent merges next with concurrent changes of another process. It returns an error until an
// attempt has seen them. The caller holds s.mu.
func (p *process) mergeConcurrent(b *backendPool, next statusEntry, kind string) (statusEntry, error) {
	if p.versions[b.ref] != b.version {
		p.versions[b.ref] = b.version
		p.externalChanges[b.ref] = p.externalChanges[b.ref].mergeEntry(b.entry)
		p.statusEntries[b.ref] = p.statusEntries[b.ref].mergeEntry(b.entry)
		p.stage.addLine(b.pool.Name, "%s meets what another has recorded", kind)
	}
	other, ok := p.externalChanges[b.ref]
	if !ok {
		return next, nil
	}
	return next.mergeEntry(other), errConflict
}

// mergeEntry returns the union of two entries.
func (e statusEntry) mergeEntry(other statusEntry) statusEntry {
	return statusEntry{unionAddresses(e.written, other.written), unionAddresses(e.down, other.down), e.taken || other.taken}
}

func unionAddresses(a, b []netip.Addr) []netip.Addr {
	addresses := slices.Concat(a, b)
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}
