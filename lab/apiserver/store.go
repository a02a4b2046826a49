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

func (o *objectStore) sortedKeys() []string {
	if o.order == nil {
		o.order = make([]string, 0, len(o.objects))
		for k := range o.objects {
			o.order = append(o.order, k)
		}
		slices.SortFunc(o.order, func(a, b string) int { return strings.Compare(sortKey(a), sortKey(b)) })
	}
	return o.order
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

func (o *objectStore) dropEvents(n int) {
	if n == 0 {
		return
	}
	o.since = o.events[n-1].version
	o.events = slices.Clone(o.events[n:])
	o.dropped += n
}

// indexAfter counts dropped events; false if the first one was dropped.
func (o *objectStore) indexAfter(version uint64) (int, bool) {
	if version < o.since {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(o.events, version+1, func(e event, v uint64) int {
		switch {
		case e.version < v:
			return -1
		case e.version > v:
			return 1
		}
		return 0
	})
	return o.dropped + i, true
}
