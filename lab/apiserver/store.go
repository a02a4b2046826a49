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

type objectStore struct {
	objects map[string]object
	// nil if stale
	order []string
	// events are the events, oldest first; dropped counts dropped ones, and since is the version of the last of those.
	events   []event
	dropped  int
	since    uint64
	watchers map[*watcher]struct{}
}

type event struct {
	kind             watch.EventType
	version          uint64
	at               time.Time
	object, previous object
	status           *metav1.Status // for error events
}

func newStore() *objectStore {
	return &objectStore{objects: map[string]object{}, watchers: map[*watcher]struct{}{}}
}

func (st *objectStore) sortedKeys() []string {
	if st.order == nil {
		st.order = make([]string, 0, len(st.objects))
		for k := range st.objects {
			st.order = append(st.order, k)
		}
		slices.SortFunc(st.order, func(a, b string) int { return strings.Compare(sortKey(a), sortKey(b)) })
	}
	return st.order
}

func sortKey(k string) string { return strings.Replace(k, "/", "\x00", 1) }

func (s *Server) commitObject(k *resourceKind, next, before object, how watch.EventType) {
	st := s.stores[k]
	s.version++
	next.SetResourceVersion(strconv.FormatUint(s.version, 10))
	at := objectKey(next.GetNamespace(), next.GetName())
	if how == watch.Deleted {
		delete(st.objects, at)
	} else {
		st.objects[at] = next
	}
	if how != watch.Modified {
		st.order = nil
	}
	st.events = append(st.events, event{kind: how, version: s.version, at: time.Now(), object: next, previous: before})
	if over := len(st.events) - s.opts.MaxEvents; over > s.opts.MaxEvents/4 {
		st.dropEvents(over)
	}
	for w := range st.watchers {
		w.wakeReader()
	}
}

func (st *objectStore) dropEvents(n int) {
	if n == 0 {
		return
	}
	st.since = st.events[n-1].version
	st.events = slices.Clone(st.events[n:])
	st.dropped += n
}

// indexAfter counts dropped events; false if the first one was dropped.
func (st *objectStore) indexAfter(version uint64) (int, bool) {
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
	return st.dropped + i, true
}
