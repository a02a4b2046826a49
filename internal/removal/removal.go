// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"sync"
	"time"
)

const (
	// Few removals are always allowed.
	Few = 3
	// share is the divisor: more than 1/share of all addresses need confirmation.
	share = 5
	// Ponders is how long the first removal waits for others.
	Ponders = 5 * time.Second
	// Together is the time within which removals count as one.
	Together = time.Minute
	// asksAgain is the delay of another check while not all Services were checked.
	asksAgain = time.Second
)

// Many reports whether n of all addresses are too many to remove unconfirmed.
func Many(n, all int) bool { return n > Few && n*share > all }

// Verdict is the decision about a Service that would lose its address. The zero value is to wait
// for confirmation.
type Verdict struct {
	// May is true if the address may be removed now.
	May bool
	// Again is when to check again; zero if allowed or waiting for confirmation.
	Again time.Time
	// Losing is the number of Services that would lose their address, including this one.
	Losing int
}

// Tally tracks the Services that would lose their addresses. Safe for concurrent use; the zero
// value is ready.
type Tally struct {
	mu     sync.Mutex
	losing map[string]*loss
	// taken maps Services that were allowed to lose their address to when.
	taken map[string]time.Time
}

// loss is a Service that would lose its address.
type loss struct {
	since time.Time
	// held is true once it waits for confirmation, which permission for others does not change.
	held bool
	// may is true once allowed, because the removal may be half done.
	may bool
}

// Loses records that a Service would lose its address.
func (t *Tally) Loses(service string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.losing == nil {
		t.losing, t.taken = map[string]*loss{}, map[string]time.Time{}
	}
	if t.losing[service] == nil {
		t.losing[service] = &loss{since: now}
	}
}

// Stays records that a Service would no longer lose its address, or that the user has requested the
// loss.
func (t *Tally) Stays(service string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.losing, service)
}

// Judge decides about a Service that would lose its address. all is the number of Services with an
// address; looked is true once all were checked, before which their number is unknown.
func (t *Tally) Judge(service string, all int, looked bool, now time.Time) Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.losing[service]
	if l == nil {
		return Verdict{May: true}
	}
	n := t.count(now)
	switch {
	case l.may:
		return Verdict{May: true, Losing: n}
	case l.held:
		return Verdict{Losing: n}
	case all <= Few:
	case now.Before(l.since.Add(Ponders)):
		return Verdict{Again: l.since.Add(Ponders), Losing: n}
	case !looked:
		return Verdict{Again: now.Add(asksAgain), Losing: n}
	case Many(n, all):
		l.held = true
		return Verdict{Losing: n}
	}
	l.may, t.taken[service] = true, now
	return Verdict{May: true, Losing: n}
}

// count counts the Services that would lose or have just lost their address. The caller holds t.mu.
func (t *Tally) count(now time.Time) int {
	n := len(t.losing)
	for service, at := range t.taken {
		switch {
		case now.Sub(at) >= Together:
			delete(t.taken, service)
		case t.losing[service] == nil:
			n++
		}
	}
	return n
}
