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
	effectIgnoreValue   = "It admits no client. The valid restrictions are in force, and all other clients are denied"
	effectDenyOthers    = `It counts as "true"`
	effectKeepRules     = `It counts as "false", and clients that no restriction names are denied`
	effectPortNotServed = "The port is not served"
	effectNotShared     = "It does not apply to the pool of all nodes"
)

type flaws struct {
	items []Flaw
	ports map[PortRef]bool // that Azure cannot serve
}

// addFlaw adds a flaw, up to the limit.
func (fs *flaws) addFlaw(field, value, want, effect string) {
	f := Flaw{Problem{Field: field, Value: value, Expected: want}, effect}
	if len(fs.items) < maxProblems && !slices.Contains(fs.items, f) {
		fs.items = append(fs.items, f)
	}
}

// excludePort excludes a port that Azure cannot serve.
func (fs *flaws) excludePort(p Port, field, value, want string) {
	if fs.isExcludedPort(p) {
		return
	}
	if fs.ports == nil {
		fs.ports = map[PortRef]bool{}
	}
	fs.ports[PortRef{p.Port, p.Protocol}] = true
	fs.items = append(fs.items, Flaw{Problem{ofPorts(p, field), value, want}, effectPortNotServed}) // no limit: the status needs each
}

func (fs *flaws) isExcludedPort(p Port) bool { return fs.ports[PortRef{p.Port, p.Protocol}] }

// reportExcluded calls wrong for the flaws of ports if no port can be served.
func (fs *flaws) reportExcluded(rules []lb.Rule, wrong func(field, value, want string)) {
	for _, f := range fs.items {
		if len(rules) == 0 && f.Effect == effectPortNotServed {
			wrong(f.Field, f.Value, f.Expected)
		}
	}
}

// readRestriction parses a boolean restriction. An invalid value counts as the stricter one and adds a flaw.
func (r *reader) readRestriction(name string, stricter bool, effect string) bool {
	if !isInvalidBool(r.readText(name)) {
		return r.readBool(name)
	}
	r.addFlaw(name, r.annotations[name], `"true" or "false"`, effect)
	return stricter
}

func isInvalidBool(value string, isSet bool) bool {
	return isSet && !strings.EqualFold(value, "false") && !strings.EqualFold(value, "true")
}
