// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// expectation is a condition that a script can check. It runs if its key is given.
type expectation struct {
	key  string
	meet func(s *Stage, a *reader) error
}

func expectations() []expectation {
	return []expectation{
		{"level", expectLevel},
		{"calm", func(s *Stage, a *reader) error { a.flag("calm"); return s.expectCalm() }},
		{"pool", expectHolds},
		{"events", expectEvents},
		{"calls", func(s *Stage, a *reader) error {
			return s.expectCalls(a, "calls", func(n, want int) bool { return n == want })
		}},
		{"most-calls", func(s *Stage, a *reader) error {
			return s.expectCalls(a, "most-calls", func(n, want int) bool { return n <= want })
		}},
		{"queue", expectQueue},
		{"parked", expectParked},
		{"success", expectObserved},
	}
}

func doExpect(s *Stage, a *reader) (string, error) {
	s.opts.Settle()
	met := false
	for _, e := range expectations() {
		if a.has(e.key) {
			met = true
			if err := e.meet(s, a); err != nil {
				return "", &Broken{Check: expected, How: err.Error()}
			}
		}
	}
	if !met {
		return "", errors.New("expect what?")
	}
	return "ok\n", a.err()
}

func expectLevel(s *Stage, a *reader) error {
	a.flag("level")
	named := a.words()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level(named)
}

// level returns how the named pools, or all bound pools in Azure, are out of sync. The caller holds
// s.mu.
func (s *Stage) level(named []string) error {
	var errs []error
	for _, k := range s.sorted() {
		if len(named) > 0 && !slices.Contains(named, k.id.Name) || len(named) == 0 && (k.deleted || !s.kept(k)) {
			continue
		}
		if how := s.unlevel(k); how != "" {
			errs = append(errs, fmt.Errorf("%s is not level: %s", k.id.Name, how))
		}
	}
	return errors.Join(errs...)
}

// expectCalm requires that all pools are in sync, nothing is queued, and ten intervals pass without
// a write.
func (s *Stage) expectCalm() error {
	s.mu.Lock()
	err := s.level(nil)
	p, puts := s.process, s.journal.counts["PUT"]
	if err == nil && !s.resting(p) {
		err = errors.New("something waits or is under way")
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.sleep(10 * s.opts.Interval)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.journal.counts["PUT"] - puts; n > 0 {
		return fmt.Errorf("%d writes in ten quiet intervals", n)
	}
	return s.level(nil)
}

func expectHolds(s *Stage, a *reader) error {
	name, want := a.text("pool", ""), a.list("holds")
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.poolNamed(name)
	if k == nil {
		return fmt.Errorf("there is no pool %s", name)
	}
	held, _ := s.holds(k)
	var got []string
	for _, e := range held {
		got = append(got, e.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("pool %s holds %v, not %v", name, got, want)
	}
	return nil
}

func expectEvents(s *Stage, a *reader) error {
	want, got := a.list("events"), s.told()
	if !slices.Equal(got, want) {
		return fmt.Errorf("told were (%s), not (%s)", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

func (s *Stage) expectCalls(a *reader, key string, fits func(n, want int) bool) error {
	want, n := a.number(key, 0), s.counted()
	if own := n["GET"] + n["PUT"]; !fits(own, want) {
		return fmt.Errorf("%d calls (%d GET, %d PUT; %d polls and %d results apart), not %d", own, n["GET"], n["PUT"], n["poll"], n["result"], want)
	}
	return nil
}

func expectQueue(s *Stage, a *reader) error {
	want := a.number("queue", 0)
	p := s.alive()
	if p == nil {
		return errors.New("no process runs")
	}
	if n := p.lanes.Backlog().Operations; n != want {
		return fmt.Errorf("%d operations wait, not %d", n, want)
	}
	return nil
}

func expectParked(s *Stage, a *reader) error {
	name := a.text("parked", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.poolNamed(name); k == nil || !k.parkedUntil.After(time.Now()) {
		return fmt.Errorf("pool %s is not parked", name)
	}
	return nil
}

func expectObserved(s *Stage, a *reader) error {
	success, failure := a.number("success", 0), a.number("failure", 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal.success != success || s.journal.failure != failure {
		return fmt.Errorf("%d successes and %d failures were observed, not %d and %d", s.journal.success, s.journal.failure, success, failure)
	}
	return nil
}
