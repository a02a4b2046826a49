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
	key       string
	checkArgs func(s *Stage, a *argReader) error
}

func allExpectations() []expectation {
	return []expectation{
		{"in-sync", expectInSync},
		{"calm", func(s *Stage, a *argReader) error { a.flagArg("calm"); return s.expectIdle() }},
		{"pool", expectMembers},
		{"events", expectEvents},
		{"calls", func(s *Stage, a *argReader) error {
			return s.expectCalls(a, "calls", func(n, want int) bool { return n == want })
		}},
		{"most-calls", func(s *Stage, a *argReader) error {
			return s.expectCalls(a, "most-calls", func(n, want int) bool { return n <= want })
		}},
		{"queue", expectQueue},
		{"parked", expectParked},
		{"success", expectObserved},
	}
}

func doExpect(s *Stage, a *argReader) (string, error) {
	s.opts.Settle()
	met := false
	for _, e := range allExpectations() {
		if a.hasArg(e.key) {
			met = true
			if err := e.checkArgs(s, a); err != nil {
				return "", &CheckError{Check: expected, How: err.Error()}
			}
		}
	}
	if !met {
		return "", errors.New("expect what?")
	}
	return "ok\n", a.joinErrors()
}

func expectInSync(s *Stage, a *argReader) error {
	a.flagArg("in-sync")
	named := a.wordArgs()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkInSync(named)
}

// checkInSync returns how the named pools, or all bound pools in Azure, are out of sync. The caller holds
// s.mu.
func (s *Stage) checkInSync(named []string) error {
	var errs []error
	for _, k := range s.sortedPools() {
		if len(named) > 0 && !slices.Contains(named, k.id.Name) || len(named) == 0 && (k.deleted || !s.isManaged(k)) {
			continue
		}
		if how := s.outOfSyncReason(k); how != "" {
			errs = append(errs, fmt.Errorf("%s is not in sync: %s", k.id.Name, how))
		}
	}
	return errors.Join(errs...)
}

// expectIdle requires that all pools are in sync, nothing is queued, and ten intervals pass without
// a write.
func (s *Stage) expectIdle() error {
	s.mu.Lock()
	err := s.checkInSync(nil)
	p, puts := s.process, s.history.counts["PUT"]
	if err == nil && !s.isIdle(p) {
		err = errors.New("something waits or is under way")
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.sleepFor(10 * s.opts.Interval)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.history.counts["PUT"] - puts; n > 0 {
		return fmt.Errorf("%d writes in ten quiet intervals", n)
	}
	return s.checkInSync(nil)
}

func expectMembers(s *Stage, a *argReader) error {
	name, want := a.textArg("pool", ""), a.listArg("holds")
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.poolNamed(name)
	if k == nil {
		return fmt.Errorf("there is no pool %s", name)
	}
	held, _ := s.azureAddresses(k)
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

func expectEvents(s *Stage, a *argReader) error {
	want, got := a.listArg("events"), s.takeEvents()
	if !slices.Equal(got, want) {
		return fmt.Errorf("told were (%s), not (%s)", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

func (s *Stage) expectCalls(a *argReader, key string, fits func(n, want int) bool) error {
	want, n := a.intArg(key, 0), s.takeCounts()
	if own := n["GET"] + n["PUT"]; !fits(own, want) {
		return fmt.Errorf("%d calls (%d GET, %d PUT; %d polls and %d results apart), not %d", own, n["GET"], n["PUT"], n["poll"], n["result"], want)
	}
	return nil
}

func expectQueue(s *Stage, a *argReader) error {
	want := a.intArg("queue", 0)
	p := s.runningProcess()
	if p == nil {
		return errors.New("no process runs")
	}
	if n := p.updater.Backlog().Operations; n != want {
		return fmt.Errorf("%d operations wait, not %d", n, want)
	}
	return nil
}

func expectParked(s *Stage, a *argReader) error {
	name := a.textArg("parked", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.poolNamed(name); k == nil || !k.parkedUntil.After(time.Now()) {
		return fmt.Errorf("pool %s is not parked", name)
	}
	return nil
}

func expectObserved(s *Stage, a *argReader) error {
	success, failure := a.intArg("success", 0), a.intArg("failure", 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.history.success != success || s.history.failure != failure {
		return fmt.Errorf("%d successes and %d failures were observed, not %d and %d", s.history.success, s.history.failure, success, failure)
	}
	return nil
}
