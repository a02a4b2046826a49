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
	"weir.dev/weir/internal/membership"
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

// sorted returns the pools by name. The caller holds s.mu.
func (s *Stage) sorted() []*pool {
	return slices.SortedFunc(maps.Values(s.pools), func(a, b *pool) int { return strings.Compare(a.id.Name, b.id.Name) })
}

// holds returns a pool's current addresses in Azure, and whether the pool exists.
func (s *Stage) holds(k *pool) ([]lb.Address, bool) {
	l := s.look(k)
	return l.held, l.there
}

// outOfForce reports whether the last write of a pool failed, so its content is not in effect.
func (s *Stage) outOfForce(k *pool) bool { return s.look(k).failed }

// look is a snapshot of a pool in Azure.
type look struct {
	held []lb.Address
	// byWeir are addresses added by Weir and downByWeir those set Down by Weir, according to
	// Azure's log.
	byWeir, downByWeir map[netip.Addr]bool
	there              bool
	// failed: the last write failed.
	failed bool
	at     time.Time
	writes int // Azure writes at the time of the snapshot
}

// settles is how long a write can still change the state.
const settles = 10 * time.Second

// look returns a snapshot of a pool, cached because reads are expensive.
func (s *Stage) look(k *pool) look {
	now := time.Now()
	if l, ok := s.looked[k]; ok && l.writes == s.writes && (l.at.Equal(now) || l.at.Sub(s.written) > settles) {
		return l
	}
	raw, ok := s.emu.Get(k.id.String())
	body := readPool(raw)
	l := look{held: body.entries(), there: ok, failed: body.Properties.ProvisioningState == "Failed", at: now, writes: s.writes}
	l.byWeir, l.downByWeir = s.traces(k)
	s.looked[k] = l
	return l
}

// touch invalidates the snapshots because of a write. The caller holds s.mu.
func (s *Stage) touch() {
	s.writes++
	s.written = time.Now()
}

// wants returns a pool's desired addresses without foreign ones. The caller holds s.mu.
func (s *Stage) wants(k *pool) []lb.Address {
	if b := s.cluster.bindings[k.id.Name]; b != nil {
		return s.cluster.members(b)
	}
	return nil
}

// missingForeign lists lost or changed foreign addresses, or "" if there are none or no pool
// exists. The caller holds s.mu.
func (s *Stage) missingForeign(k *pool) string {
	held, ok := s.holds(k)
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

// unlevel describes how a pool differs from the desired and foreign addresses, or "". The caller
// holds s.mu.
func (s *Stage) unlevel(k *pool) string {
	held, ok := s.holds(k)
	if !ok {
		return "it does not exist"
	}
	var want, got []netip.Addr
	for _, a := range append(s.others(k), s.wants(k)...) {
		want = append(want, a.IP)
	}
	for _, a := range held {
		got = append(got, a.IP)
	}
	slices.SortFunc(want, netip.Addr.Compare)
	slices.SortFunc(got, netip.Addr.Compare)
	want = slices.Compact(want)
	switch same := slices.Equal(got, want); {
	case same && s.outOfForce(k) && !s.withoutOurs(k):
		return "it holds what it has to, and its last write has failed"
	case same:
		return s.wrongStates(k, held)
	}
	return fmt.Sprintf("it holds %v and has to hold %v", got, want)
}

// withoutOurs reports whether a pool has neither desired nor recorded addresses. After a failed
// load balancer write, nothing retries such a pool. The caller holds s.mu.
func (s *Stage) withoutOurs(k *pool) bool {
	b := s.cluster.bindings[k.id.Name]
	if b == nil || s.process == nil || len(s.wants(k)) > 0 {
		return false
	}
	on := s.process.ledger[b.ref]
	return len(on.written)+len(on.down) == 0
}

// wrongStates lists node addresses with a wrong admin state, or "". The caller holds s.mu.
func (s *Stage) wrongStates(k *pool, held []lb.Address) string {
	if !s.opts.AdminState {
		return ""
	}
	want := map[netip.Addr]bool{}
	for _, a := range s.wants(k) {
		want[a.IP] = a.AdminState == lb.Down
	}
	var wrong []string
	for _, a := range held {
		toBe, ours := want[a.IP]
		is := a.AdminState == lb.Down
		if k.foreignDown[a.IP] && !is {
			wrong = append(wrong, fmt.Sprintf("%s was set Down by somebody else, and is not any more", a.IP))
		}
		switch byWeir := s.look(k).downByWeir[a.IP]; {
		case byWeir && !toBe && !k.left.down[a.IP]:
			wrong = append(wrong, fmt.Sprintf("%s was set Down by Weir, and its node does not drain", a.IP))
		case ours && toBe && !is:
			wrong = append(wrong, fmt.Sprintf("%s is not Down, and its node drains", a.IP))
		}
	}
	return strings.Join(wrong, ", ")
}

// watch records since when a pool holds undesired addresses or is out of sync. The caller holds
// s.mu.
func (s *Stage) watch(k *pool) {
	s.reclaimed(k)
	s.watchUnwanted(k)
	s.forgetDown(k)
	if until := later(s.gatesOpen(k), later(k.patience, k.excuse)); until.After(time.Now()) {
		k.trouble = later(k.trouble, until)
	}
	wanted := membership.Fingerprint(s.wants(k))
	switch level := k.deleted || s.unlevel(k) == ""; {
	case level:
		k.offSince = time.Time{}
	case k.offSince.IsZero() || wanted != k.wanted:
		k.offSince = time.Now()
		if k.changed.IsZero() {
			k.changed = k.offSince
		}
	}
	k.wanted = wanted
}

func (s *Stage) watchUnwanted(k *pool) {
	held, _ := s.holds(k)
	wanted := map[netip.Addr]bool{}
	for _, a := range append(s.others(k), s.wants(k)...) {
		wanted[a.IP] = true
	}
	now := map[string]time.Time{}
	for _, a := range held {
		ip := a.IP.String()
		switch since, known := k.unwanted[ip]; {
		case wanted[a.IP]:
		case known:
			now[ip] = since
		default:
			now[ip] = time.Now()
		}
	}
	k.unwanted = now
}

// spell formats a pool's content for the trace: managed members by name, then foreign ones.
func (s *Stage) spell(k *pool) string {
	held, ok := s.holds(k)
	if !ok {
		return "not there"
	}
	var ours, foreign []string
	for _, a := range held {
		if a.AdminState == lb.Down {
			a.Name += "(Down)"
		}
		if slices.ContainsFunc(k.foreign, func(f lb.Address) bool { return f.IP == a.IP }) {
			foreign = append(foreign, a.Name)
		} else {
			ours = append(ours, a.Name)
		}
	}
	slices.Sort(ours)
	slices.Sort(foreign)
	text := "holds " + strings.Join(ours, " ")
	if len(ours) == 0 {
		text = "holds none of ours"
	}
	if len(foreign) > 0 {
		text += ", foreign " + strings.Join(foreign, " ")
	}
	return text
}

// resting reports whether nothing is queued or in progress.
func (s *Stage) resting(p *process) bool {
	return p != nil && p.lanes.Backlog().OldestQueuedAt.IsZero()
}
