// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// store holds the objects of a kind and what became of them.
type store struct {
	objects map[string]object
	// order are the keys, sorted; nil if a key came or went.
	order []string
	// events are what happened, oldest first; forgotten is how many before them are dropped, and
	// since the version of the last of those: a watch cannot start before it.
	events    []event
	forgotten int
	since     uint64
	watchers  map[*watcher]struct{}
}

// event is a change of an object: what it became, and what it was.
type event struct {
	kind    watch.EventType
	version uint64
	at      time.Time
	is, was object
	why     *metav1.Status // of an error
}

func newStore() *store {
	return &store{objects: map[string]object{}, watchers: map[*watcher]struct{}{}}
}

// keys returns them in the order in which lists show objects.
func (st *store) keys() []string {
	if st.order == nil {
		st.order = make([]string, 0, len(st.objects))
		for k := range st.objects {
			st.order = append(st.order, k)
		}
		slices.SortFunc(st.order, func(a, b string) int { return strings.Compare(sortable(a), sortable(b)) })
	}
	return st.order
}

// sortable orders namespaces before names.
func sortable(k string) string { return strings.Replace(k, "/", "\x00", 1) }

// commit writes an object, whose version it sets, and tells the watches.
func (s *Server) commit(k *kind, next, before object, how watch.EventType) {
	st := s.stores[k]
	s.version++
	next.SetResourceVersion(strconv.FormatUint(s.version, 10))
	at := key(next.GetNamespace(), next.GetName())
	if how == watch.Deleted {
		delete(st.objects, at)
	} else {
		st.objects[at] = next
	}
	if how != watch.Modified {
		st.order = nil
	}
	st.events = append(st.events, event{kind: how, version: s.version, at: time.Now(), is: next, was: before})
	if over := len(st.events) - s.opts.Remember; over > s.opts.Remember/4 {
		st.forget(over)
	}
	for w := range st.watchers {
		w.wakes()
	}
}

// forget drops the oldest events.
func (st *store) forget(n int) {
	if n == 0 {
		return
	}
	st.since = st.events[n-1].version
	st.events = slices.Clone(st.events[n:])
	st.forgotten += n
}

// after returns the number of the first event that is newer than a version, counted from the
// first that ever was; false if some of those are forgotten.
func (st *store) after(version uint64) (int, bool) {
	if version < st.since {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(st.events, version+1, func(e event, v uint64) int {
		switch {
		case e.version < v:
			return -1
		case e.version > v:
			return 1
		}
		return 0
	})
	return st.forgotten + i, true
}
