// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"sync"
	"time"
)

const (
	// Few are never held up.
	Few = 3
	// share is the part of all addresses, one in so many, above which they are.
	share = 5
	// Ponders is how long the first one waits for others: an address that is lost is lost for
	// good, and five seconds cost nothing.
	Ponders = 5 * time.Second
	// Together is how close to each other those are that count as one.
	Together = time.Minute
	// asksAgain is when a Service asks again while others have not been looked at.
	asksAgain = time.Second
)

// Many reports whether n of all addresses are too many to be taken away unasked.
func Many(n, all int) bool { return n > Few && n*share > all }

// Verdict is what becomes of a Service that would lose its address. The zero value is to wait
// for a person.
type Verdict struct {
	// May is true if it may lose it now.
	May bool
	// Again is when it has to ask again; zero if it may, or has to wait for a person.
	Again time.Time
	// Losing is how many Services would lose their address, this one included.
	Losing int
}

// Tally knows the Services that would lose their addresses. The zero value is ready. Its
// methods may be called from any goroutine.
type Tally struct {
	mu     sync.Mutex
	losing map[string]*loss
	// taken are the Services that have lost theirs, and when they were allowed to.
	taken map[string]time.Time
}

// loss is a Service that would lose its address.
type loss struct {
	since time.Time
	// held is true once it waits for a person: that others are let go does not let it go.
	held bool
	// may is true once it was let go: half of it may be gone since.
	may bool
}

// Loses notes that a Service would lose its address.
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

// Stays notes that a Service would lose nothing any more, or that a person has asked for it.
func (t *Tally) Stays(service string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.losing, service)
}

// Judge says what becomes of a Service that would lose its address, of so many Services that
// have one. Until all of them were looked at nobody knows how many there are.
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

// count counts those that would lose theirs, and those that have just lost theirs. The caller
// holds t.mu.
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
