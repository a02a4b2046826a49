// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Annotations of Azure properties. Without one, a value of another client is kept.
const (
	NoHealthyBackends  = "weir.dev/no-healthy-backends-behavior"
	ConnectionTracking = "weir.dev/enable-connection-tracking"
)

// WrittenProperties records the annotations of properties that Weir may have written. If one is removed, Weir writes
// Azure's default.
const WrittenProperties = "weir.dev/written-properties"

// WeirAnnotations are the annotations of Weir that a Service is built from.
var WeirAnnotations = []string{Zones, RetainAddress, NoHealthyBackends, ConnectionTracking, WrittenProperties}

var properties = []string{NoHealthyBackends, ConnectionTracking}

// IsProperty reports whether WrittenProperties can have a name.
func IsProperty(name string) bool { return slices.Contains(properties, "weir.dev/"+name) }

// requestedProperties returns the names to record in WrittenProperties.
func (r *reader) requestedProperties() []string {
	var names []string
	for _, name := range properties {
		if _, ok := r.readText(name); ok {
			names = append(names, strings.TrimPrefix(name, "weir.dev/"))
		}
	}
	return names
}

func (r *reader) hasWritten(name string) bool {
	return slices.Contains(r.readList(WrittenProperties), strings.TrimPrefix(name, "weir.dev/"))
}

// noHealthyBackends is empty to keep the observed behavior.
func (r *reader) noHealthyBackends() lb.NoHealthyBackends {
	value, ok := r.readText(NoHealthyBackends)
	switch {
	case !ok && r.hasWritten(NoHealthyBackends), ok && strings.EqualFold(value, string(lb.AllProbedDown)):
		return lb.AllProbedDown
	case !ok:
		return ""
	case strings.EqualFold(value, string(lb.AllProbedUp)):
		return lb.AllProbedUp
	}
	r.addProblem(NoHealthyBackends, value, `"AllProbedDown" or "AllProbedUp"`)
	return ""
}

// connectionTracking is nil to keep the observed value.
func (r *reader) connectionTracking() *bool {
	if _, ok := r.readText(ConnectionTracking); !ok && !r.hasWritten(ConnectionTracking) {
		return nil
	}
	return new(r.readBool(ConnectionTracking))
}
