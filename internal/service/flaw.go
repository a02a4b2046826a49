// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strings"
)

// Flaw is something that is wrong with a part of a Service, which is served without that part.
type Flaw struct {
	Problem
	// Effect is what the Service lacks by that.
	Effect string
}

// Error names what is wrong, and what follows.
func (f Flaw) Error() string { return f.Problem.Error() + ". " + f.Effect }

// The effects of flaws.
const (
	admitsNobody = "It admits no client. The valid restrictions are in force, and all others are denied"
	deniesOthers = `It counts as "true"`
	keepsRules   = `It counts as "false", and clients that no restriction names are denied`
	unservedPort = "The port is not served"
)

// flawed adds a flaw, unless there are many already.
func (r *reader) flawed(field, value, want, effect string) {
	f := Flaw{Problem{Field: field, Value: value, Want: want}, effect}
	if len(r.flaws) < mostProblems && !slices.Contains(r.flaws, f) {
		r.flaws = append(r.flaws, f)
	}
}

// unserved leaves a port out that Azure cannot serve.
func (r *reader) unserved(p Port, field, value, want string) {
	if r.isUnserved(p) {
		return
	}
	if r.ports == nil {
		r.ports = map[PortRef]bool{}
	}
	r.ports[PortRef{p.Port, p.Protocol}] = true
	r.flaws = append(r.flaws, Flaw{Problem{ofPorts(p, field), value, want}, unservedPort}) // the status names each
}

func (r *reader) isUnserved(p Port) bool { return r.ports[PortRef{p.Port, p.Protocol}] }

// withoutPorts makes problems of the flaws of ports if Azure can serve none of them.
func (r *reader) withoutPorts(spec *Spec) {
	if len(spec.Rules) > 0 || len(r.ports) == 0 {
		return
	}
	for _, f := range r.flaws {
		if f.Effect == unservedPort {
			r.wrong(f.Field, f.Value, f.Want)
		}
	}
}

// strictly reads "true" or "false" of a restriction. What is neither of them counts as the stricter one, with an
// effect that says so.
func (r *reader) strictly(name string, stricter bool, effect string) bool {
	if !r.unclear(name) {
		return r.yes(name)
	}
	r.flawed(name, r.annotations[name], `"true" or "false"`, effect)
	return stricter
}

// unclear reports whether an annotation that is to be "true" or "false" is neither of them.
func (r *reader) unclear(name string) bool {
	value, ok := r.text(name)
	return ok && !strings.EqualFold(value, "false") && !strings.EqualFold(value, "true")
}
