// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"slices"

	"weir.dev/weir/lab/armemu/schema"
)

// maxViolations limits the memory of a long-lived server.
const maxViolations = 100

// Violation is recorded once per method, property and fault.
type Violation struct {
	schema.Violation
	Method, Path, Version, UserAgent string
}

// String returns method and property, the key of allowlists.
func (v Violation) String() string { return v.Method + " " + v.Violation.String() }

// Describe returns the violation with its request.
func (v Violation) Describe() string {
	return fmt.Sprintf("%s (%q) in %s with api-version %s from %q", v, v.Detail, v.Path, v.Version, v.UserAgent)
}

func (e *Emulator) checkSchema(x *exchange) *Problem {
	r := x.route
	if r.kind != KindPut && r.kind != KindPatch || r.id.root == nil || r.problem != nil || !schema.HasType(r.id.typeName()) {
		return nil
	}
	body, err := x.decodeObject()
	if err != nil {
		return nil // rejected by validation
	}
	version := x.req.URL.Query().Get("api-version")
	found := schema.Check(r.id.typeName(), version, r.kind == KindPatch, body)
	if len(found) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range found {
		v := Violation{Violation: f, Method: x.req.Method, Path: x.req.URL.Path, Version: version, UserAgent: x.req.UserAgent()}
		known := slices.ContainsFunc(e.violations, func(k Violation) bool { return k.String() == v.String() })
		if !known && len(e.violations) < maxViolations {
			e.violations = append(e.violations, v)
		}
	}
	return nil
}

// Violations returns the recorded violations of Azure's OpenAPI schema.
func (e *Emulator) Violations() []Violation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.violations)
}
