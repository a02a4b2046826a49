// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"net/netip"
	"slices"
	"time"
)

// ledgerWaits is the write timeout of weir-controller's status store.
const ledgerWaits = 10 * time.Second

var errAnother = errors.New("another process has recorded addresses meanwhile")

// saveLate delivers a ledger write to the API server after a delay, even if its sender is dead. The
// server rejects it if the entry changed.
func (p *process) saveLate(b *binding, next entry, by time.Duration) error {
	s, landed := p.stage, make(chan error, 1)
	s.mu.Lock()
	version, closing := p.versions[b.ref], s.closing
	s.mu.Unlock()
	s.later(func() {
		waited(by, closing)
		landed <- p.landsInLedger(b, next, version)
	})
	late := errLedger
	timer := time.NewTimer(ledgerWaits)
	defer timer.Stop()
	select {
	case late = <-landed:
	case <-timer.C:
	case <-p.ctx.Done():
	}
	p.awakeLast()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.dead:
		return errDead
	case late != nil && !p.former:
		return p.notSaved(b, "record is late")
	case late != nil:
		return late
	}
	p.owns(b, next)
	return nil
}

func (p *process) landsInLedger(b *binding, next entry, version int) error {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal.counts["record"]++
	if b.version != version {
		s.trace(b.pool.Name, "a late record of %s is refused: its version is old", p.name)
		return errLedger
	}
	s.trace(b.pool.Name, "a late record of %s arrives", p.name)
	p.stands(b, next)
	return nil
}

// united merges next with concurrent changes of another process. It returns an error until an
// attempt has seen them. The caller holds s.mu.
func (p *process) united(b *binding, next entry, kind string) (entry, error) {
	if p.versions[b.ref] != b.version {
		p.versions[b.ref] = b.version
		p.learnt[b.ref] = p.learnt[b.ref].with(b.entry)
		p.ledger[b.ref] = p.ledger[b.ref].with(b.entry)
		p.stage.trace(b.pool.Name, "%s meets what another has recorded", kind)
	}
	other, ok := p.learnt[b.ref]
	if !ok {
		return next, nil
	}
	return next.with(other), errAnother
}

// with returns the union of two entries.
func (e entry) with(other entry) entry {
	return entry{union(e.written, other.written), union(e.down, other.down), e.taken || other.taken}
}

func union(a, b []netip.Addr) []netip.Addr {
	all := slices.Concat(a, b)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}
