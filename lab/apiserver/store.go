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

// store holds the objects of a kind and their event history.
type store struct {
	objects map[string]object
	// order caches the sorted keys; nil if stale.
	order []string
	// events are the retained events, oldest first; forgotten counts dropped ones, and since is the
	// version of the last of those: a watch cannot start before it.
	events    []event
	forgotten int
	since     uint64
	watchers  map[*watcher]struct{}
}

// event is a change of an object.
type event struct {
	kind    watch.EventType
	version uint64
	at      time.Time
	is, was object
	why     *metav1.Status // for error events
}

func newStore() *store {
	return &store{objects: map[string]object{}, watchers: map[*watcher]struct{}{}}
}

// keys returns the keys in list order.
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

// commit writes an object with a new version and wakes the watches.
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

// forget drops the n oldest events.
func (st *store) forget(n int) {
	if n == 0 {
		return
	}
	st.since = st.events[n-1].version
	st.events = slices.Clone(st.events[n:])
	st.forgotten += n
}

// after returns the index of the first event newer than a version, counting dropped ones; false if
// it was dropped.
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
