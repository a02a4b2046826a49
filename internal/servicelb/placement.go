// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"reflect"
	"slices"
)

// Placement says where parts of a Service may be. What is in memory is newer than the
// informer's copy.
type Placement struct {
	Record
	// bound is true once the informer's copy has shown Weir's finalizer.
	bound bool
	// free is true once nothing is left of the Service, though the informer's copy may not
	// show yet that Weir let go of it.
	free bool
	// absent is true for a Service that is gone: nothing can be written down of it any more.
	// deleting is true once it was seen to be deleted.
	absent, deleting bool
}

// shows takes in whether a copy of the informer has Weir's finalizer.
func (p *Placement) shows(finalizer bool) { p.bound = p.bound || finalizer }

// lostFinalizer reports whether somebody took the finalizer away, as far as the informer's copy
// tells, which may not show it yet: it is put back then.
func (p *Placement) lostFinalizer(s Service) bool { return p.bound && !s.Finalizer }

// next returns the record of a Service with these places and groups.
func (p *Placement) next(s Service, places, groups []string, class string) Record {
	r := Record{Places: slices.Clone(places), Groups: slices.Clone(groups), Class: p.Class}
	switch {
	case len(places) == 0:
		r.Class = nil
	case s.Ours(class):
		r.Class = &class
	}
	return r
}

// recorded reports whether a record is written down already, and the Service kept, or not, as it
// says.
func (p *Placement) recorded(s Service, r Record, class string) bool {
	kept := s.Finalizer
	if len(r.Places) == 0 || s.Deleting { // one that goes gets no finalizer any more
		kept = s.Held(class)
	}
	return slices.Equal(p.Places, r.Places) && slices.Equal(p.Groups, r.Groups) &&
		kept == (len(r.Places) > 0) && reflect.DeepEqual(p.Class, r.Class)
}

// wrote takes in what is written down now.
func (p *Placement) wrote(r Record) { p.Record, p.free = r, false }

// leaves reports whether a Service that is gone may have left something.
func (p *Placement) leaves() bool { return len(p.Places) > 0 && !p.free }
