// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"reflect"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// A fight is what Weir wrote for a Service, saw in Azure, and found undone twice, without any
// Service having changed what it wants. From then on the parts stay as somebody else wants them, and Weir
// tries again after a pause that doubles.
const (
	firstTruce = 30 * time.Minute
	lastTruce  = 24 * time.Hour
	// forgets is how long ago it has to be that a part was undone, once the Service is level
	// again, to count no more.
	forgets = time.Hour
	// Azure may show something else right after a write than was written, for so long and so
	// often, before that counts as undone: a policy can change what is written, but Azure can be
	// late as well.
	atOnce      = 5 * time.Minute
	timesAtOnce = 5
)

// Contest is a fight about what one Service has in one resource, for people.
type Contest struct {
	// In names the resource.
	In string
	// Undone says of each part that is undone what it is now, and what Weir wants.
	Undone []string
	// Since is when the fight was found.
	Since time.Time
	// Until is before when nothing is written; zero if Weir has tried again since, and has
	// not looked yet what became of that.
	Until time.Time
}

// undone is a part that is not as Weir wrote it: its kind and name, and what it is now.
type undone struct{ part, text string }

// ask is what makes a fight another one: a Service that changes, or a person who asks.
type ask struct {
	desired *service.Spec
	on      lb.LoadBalancerKey
	again   string
}

func (j *job) ask() ask { return ask{j.Desired, j.On.Key(), j.Again} }

// fights notes the fights that there are about what a job has.
func (j *job) fights(all ...*Contest) {
	for _, c := range all {
		if c != nil {
			j.contests = append(j.contests, *c)
		}
	}
}

// fight is what is known of one Service in one resource.
type fight struct {
	ask
	// held is true once Azure has shown all parts as they were written.
	held bool
	// unlike are the writes in a row right after which Azure showed something else: the first,
	// the last, and how many.
	unlike struct {
		first, last time.Time
		times       int
	}
	// found are the parts that were undone, and when that was found last.
	found map[string]time.Time
	// turns counts how often it was given up, until it is forgotten.
	turns   int
	contest *Contest // nil if there is no fight
}

// yields takes the parts of a Service that differ from what it wants now, and reports whether
// they have to be left as they are. If they have not, whoever asks writes them.
func (b *Balancers) yields(of content, to string, a ask, in string, differ []undone, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := string(of) + to
	f := b.fights[key]
	if f == nil || f.on != a.on || f.again != a.again || !reflect.DeepEqual(f.desired, a.desired) {
		f = &fight{ask: a, found: map[string]time.Time{}}
		b.fights[key] = f
	}
	switch {
	case !f.held && (f.unlike.times < timesAtOnce || f.unlike.last.Sub(f.unlike.first) < atOnce):
		return false // our own write is still to come, or nobody knows what became of it
	case len(differ) == 0:
		f.rest(now)
		return false
	}
	return f.undo(in, differ, now)
}

// undoneAtOnce notes that Azure showed parts of a Service otherwise than they had just been
// written.
func (b *Balancers) undoneAtOnce(of content, to string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.fights[string(of)+to]
	if f == nil {
		return
	}
	if f.unlike.times == 0 {
		f.unlike.first = now
	}
	f.unlike.last = now
	f.unlike.times++
}

// rest is for a look that finds all as it should be.
func (f *fight) rest(now time.Time) {
	f.contest, f.unlike.times = nil, 0
	for part, at := range f.found {
		if now.Sub(at) >= forgets {
			delete(f.found, part)
		}
	}
	if len(f.found) == 0 {
		f.turns = 0
	}
}

// undo is for a look that finds parts undone. Parts that are undone for the first time are
// written again: somebody may have edited them by hand.
func (f *fight) undo(in string, differ []undone, now time.Time) (yields bool) {
	again := !f.held // each time, at once
	var texts []string
	for _, u := range differ {
		_, before := f.found[u.part]
		again = again || before
		f.found[u.part] = now
		texts = append(texts, u.text)
	}
	if f.contest == nil && !again {
		f.held = false
		return false
	}
	if f.contest == nil {
		f.contest = &Contest{In: in, Since: now}
	}
	c := f.contest
	c.Undone = texts
	switch {
	case now.Before(c.Until):
		return true
	case !c.Until.IsZero(): // the pause is over
		c.Until, f.held = time.Time{}, false
		return false
	}
	c.Until = now.Add(min(firstTruce<<min(f.turns, 10), lastTruce))
	f.turns++
	return true
}

// shows notes that Azure has shown all parts of a Service as they were written, and returns
// the fight about them; nil if there is none.
func (b *Balancers) shows(of content, to string) *Contest {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.fights[string(of)+to]
	if f == nil {
		return nil
	}
	f.held = true
	if f.contest == nil {
		f.unlike.times = 0
		return nil
	}
	c := *f.contest
	return &c
}

// makesPeace forgets the fights about a Service.
func (b *Balancers) makesPeace(service string, of ...content) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range of {
		delete(b.fights, string(c)+service)
	}
}
