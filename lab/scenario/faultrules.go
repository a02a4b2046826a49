// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/lab/armemu"
)

// faultRules is the emulator's fault script. Verbs append rules; matches already used stay used.
type faultRules struct {
	rules []*faultRule
	names int
}

type faultRule struct {
	name        string
	match       map[string]any
	action      map[string]any
	matchesLeft int       // matches left; -1: unlimited
	until       time.Time // zero: unlimited
}

func (f *faultRules) countMatch(name string) {
	for _, r := range f.rules {
		if r.name == name && r.matchesLeft > 0 {
			r.matchesLeft--
		}
	}
}

func (f *faultRules) isExhausted() bool {
	now := time.Now()
	return !slices.ContainsFunc(f.rules, func(r *faultRule) bool { return r.isActive(now) })
}

func (r *faultRule) isActive(now time.Time) bool {
	return r.matchesLeft != 0 && (r.until.IsZero() || r.until.After(now))
}

// addFault appends a rule. Zero times means unlimited.
func (s *Stage) addFault(match, action map[string]any, times int, duration time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.rules
	f.names++
	r := &faultRule{name: fmt.Sprintf("fault-%d", f.names), match: match, action: action, matchesLeft: times}
	if times == 0 {
		r.matchesLeft = -1
	}
	if duration > 0 {
		r.until = time.Now().Add(duration)
	}
	f.rules = append(f.rules, r)
	return s.sendRules()
}

// resetAll removes all faults.
func (s *Stage) resetAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules.rules = nil
	return s.sendRules()
}

// sendRules sends the active rules to the emulator. The caller holds s.mu.
func (s *Stage) sendRules() error {
	now := time.Now()
	f := &s.rules
	f.rules = slices.DeleteFunc(f.rules, func(r *faultRule) bool { return !r.isActive(now) })
	script := []map[string]any{}
	for _, r := range f.rules {
		match := map[string]any{}
		for key, value := range r.match {
			match[key] = value
		}
		if r.matchesLeft > 0 {
			match["maxMatches"] = r.matchesLeft
		}
		if !r.until.IsZero() {
			match["until"] = r.until.Sub(now).String()
		}
		script = append(script, map[string]any{"name": r.name, "match": match, "action": r.action})
	}
	text, err := json.Marshal(map[string]any{"rules": script}) // JSON is valid YAML
	if err != nil {
		return err
	}
	return s.emulator.SetFaults(string(text))
}

// parseMatch converts the arguments on= and pool= or lb= to a match.
func (s *Stage) parseMatch(a *argReader, fallback string) map[string]any {
	match := map[string]any{}
	switch on := a.textArg("on", fallback); on {
	case "GET":
		match["kind"] = string(armemu.KindGet)
	case "PUT":
		match["kind"] = string(armemu.KindPut)
	case "poll":
		match["kind"] = string(armemu.KindPoll)
	case "any":
	default:
		a.addError("on=%s: want GET, PUT, poll or any", on)
	}
	if name := a.textArg("pool", ""); name != "" {
		if k := s.poolNamed(name); k != nil {
			match["path"] = k.id.String()
		} else {
			a.addError("there is no pool %s", name)
		}
	}
	if name := a.textArg("whole", ""); name != "" {
		match["path"] = "loadBalancers/" + name
	}
	if name := a.textArg("lb", ""); name != "" {
		match["path"] = "loadBalancers/" + name + "/**"
	}
	return match
}
