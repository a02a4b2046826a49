// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Flaw is an error in a part of a Service, which is served without that part.
type Flaw struct {
	Problem
	// Effect describes the consequence.
	Effect string
}

// Error returns the problem and its effect.
func (f Flaw) Error() string { return f.Problem.Error() + ". " + f.Effect }

// The effects of flaws.
const (
	admitsNobody = "It admits no client. The valid restrictions are in force, and all others are denied"
	deniesOthers = `It counts as "true"`
	keepsRules   = `It counts as "false", and clients that no restriction names are denied`
	unservedPort = "The port is not served"
)

type flaws struct {
	flaws []Flaw
	ports map[PortRef]bool // that Azure cannot serve
}

// flawed adds a flaw, up to the limit.
func (l *flaws) flawed(field, value, want, effect string) {
	f := Flaw{Problem{Field: field, Value: value, Want: want}, effect}
	if len(l.flaws) < mostProblems && !slices.Contains(l.flaws, f) {
		l.flaws = append(l.flaws, f)
	}
}

// unserved excludes a port that Azure cannot serve.
func (l *flaws) unserved(p Port, field, value, want string) {
	if l.isUnserved(p) {
		return
	}
	if l.ports == nil {
		l.ports = map[PortRef]bool{}
	}
	l.ports[PortRef{p.Port, p.Protocol}] = true
	l.flaws = append(l.flaws, Flaw{Problem{ofPorts(p, field), value, want}, unservedPort}) // no limit: the status needs each
}

func (l *flaws) isUnserved(p Port) bool { return l.ports[PortRef{p.Port, p.Protocol}] }

// withoutPorts calls wrong for the flaws of ports if no port can be served.
func (l *flaws) withoutPorts(rules []lb.Rule, wrong func(field, value, want string)) {
	for _, f := range l.flaws {
		if len(rules) == 0 && f.Effect == unservedPort {
			wrong(f.Field, f.Value, f.Want)
		}
	}
}

// strictly parses a boolean restriction. An invalid value counts as the stricter one and adds a flaw.
func (r *reader) strictly(name string, stricter bool, effect string) bool {
	if !unclear(r.text(name)) {
		return r.yes(name)
	}
	r.flawed(name, r.annotations[name], `"true" or "false"`, effect)
	return stricter
}

func unclear(value string, is bool) bool {
	return is && !strings.EqualFold(value, "false") && !strings.EqualFold(value, "true")
}
