// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"sync"
	"time"
)

const (
	// Few removals are always allowed.
	Few = 3
	// share is the divisor above which removals need confirmation.
	share = 5
	// Ponders is how long the first removal waits for others.
	Ponders = 5 * time.Second
	// Together is the time within which removals count as one.
	Together = time.Minute
	// asksAgain is the delay while not all Services were checked.
	asksAgain = time.Second
)

// Many reports whether n of all removals need confirmation.
func Many(n, all int) bool { return n > Few && n*share > all }

// Verdict is about a Service that would lose its address. Zero is to wait for confirmation.
type Verdict struct {
	// May allows the removal now.
	May bool
	// Again is when to check again; zero if allowed or held.
	Again time.Time
	// Losing counts the Services that would lose their address.
	Losing int
}

// Tally tracks such Services. Safe for concurrent use; the zero value is ready.
type Tally struct {
	mu     sync.Mutex
	losing map[string]*loss
	// taken maps Services to when the removal was allowed.
	taken map[string]time.Time
}

type loss struct {
	since time.Time
	// held is true once it waits for confirmation, even if others are confirmed.
	held bool
	// may is true once allowed: the removal may be half done.
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

// Stays records that a Service would keep its address, or that the user requested the removal.
func (t *Tally) Stays(service string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.losing, service)
}

// Judge decides about a Service. all is the number of Services with an address, looked is true once
// all were checked.
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

// count includes recent removals, and requires t.mu.
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
