// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

const bookmarkInterval = time.Minute

// watcher is a response body and a position in the events of a kind.
type watcher struct {
	s        *Server
	ctx      context.Context
	r        *request
	sel      selection
	info     runtime.SerializerInfo
	params   string // of the media type
	metadata bool

	wake, ended chan struct{}
	end         sync.Once
	deadline    time.Time
	// nextBookmark is the time of the next bookmark; zero means never.
	nextBookmark time.Time

	// The reader owns the fields below; the lock of the server guards failed.
	pending     bytes.Buffer
	frames      io.Writer
	initial     []event
	next        int
	sentVersion uint64
	failure     error
}

var errClosed = errors.New("the watch is closed")

func (s *Server) startWatch(ctx context.Context, r *request) (*watcher, error) {
	sel, err := parseSelection(r)
	if err != nil {
		return nil, err
	}
	w := &watcher{s: s, ctx: ctx, r: r, sel: sel, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	w.info, w.metadata = negotiateFormat(r.header, r.kind)
	w.params = ";stream=watch"
	if w.info.MediaType == runtime.ContentTypeJSON {
		w.params = ""
	}
	w.frames = w.info.StreamSerializer.NewFrameWriter(&w.pending)
	now := time.Now()
	w.deadline = now.Add(watchTimeout(r))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errRefused
	}
	if err := w.findPosition(); err != nil {
		return nil, err
	}
	if r.query.Get("allowWatchBookmarks") == "true" {
		w.nextBookmark = now.Add(bookmarkInterval)
	}
	s.stores[r.kind].watchers[w] = struct{}{}
	return w, nil
}

func watchTimeout(r *request) time.Duration {
	if n, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return 30*time.Minute + rand.N(30*time.Minute) //nolint:gosec // as servers spread their load
}

func (w *watcher) findPosition() error {
	s, st := w.s, w.s.stores[w.r.kind]
	version, err := parseVersion(w.r.query.Get("resourceVersion"))
	if err != nil {
		return internalError(err.Error())
	}
	w.next, _ = st.indexAfter(s.version)
	w.sentVersion = s.version
	if w.r.query.Get("sendInitialEvents") == "true" {
		if w.r.query.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchNotOlderThan) || w.r.query.Get("allowWatchBookmarks") != "true" {
			return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", field.ErrorList{
				field.Forbidden(field.NewPath("resourceVersionMatch"), "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
			})
		}
		if err := s.checkVersion(w.r); err != nil {
			return err
		}
		w.initial = append(w.initialEvents(), event{kind: watch.Bookmark, version: s.version})
		return nil
	}
	if version == 0 {
		w.initial = w.initialEvents()
		return nil
	}
	next, ok := st.indexAfter(version)
	if !ok {
		w.failure = expiredError(version, st.since)
		return nil
	}
	w.next = next
	return nil
}

func (w *watcher) initialEvents() []event {
	st := w.s.stores[w.r.kind]
	var events []event
	for _, at := range st.sortedKeys() {
		if o := st.objects[at]; w.sel.matchesObject(o) {
			events = append(events, event{kind: watch.Added, object: o})
		}
	}
	return events
}

func expiredError(version, since uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, since))
}

// wakeReader requires the lock of the server.
func (w *watcher) wakeReader() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close implements io.Closer.
func (w *watcher) Close() error {
	w.end.Do(func() {
		close(w.ended)
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		delete(w.s.stores[w.r.kind].watchers, w)
	})
	return nil
}

// Read blocks until the next event.
func (w *watcher) Read(p []byte) (int, error) {
	for {
		if w.pending.Len() > 0 {
			return w.pending.Read(p)
		}
		if err := w.ctx.Err(); err != nil {
			return 0, err
		}
		e, until, err := w.nextEvent()
		switch {
		case err != nil:
			return 0, err
		case e.kind != "":
			if err := w.encodeEvent(e); err != nil {
				return 0, err
			}
		default:
			if err := w.waitUntil(until); err != nil {
				return 0, err
			}
		}
	}
}

func (w *watcher) waitUntil(until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-timer.C:
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-w.ended:
		return errClosed
	}
	return nil
}

// nextEvent returns a due event, or an empty one and the time to wait for.
func (w *watcher) nextEvent() (event, time.Time, error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if w.failure != nil {
		return w.failWatch()
	}
	if len(w.initial) > 0 {
		e := w.initial[0]
		w.initial = w.initial[1:]
		return e, now, nil
	}
	if !now.Before(w.deadline) {
		return event{}, now, io.EOF
	}
	until := w.deadline
	st := s.stores[w.r.kind]
	if w.next < st.dropped {
		w.failure = expiredError(w.sentVersion, st.since)
		return w.failWatch()
	}
	for ; w.next < st.dropped+len(st.events); w.next++ {
		e, seen := w.selectEvent(st.events[w.next-st.dropped])
		if !seen {
			continue
		}
		if due := e.at.Add(s.eventDelay(w.r, e.kind)); now.Before(due) {
			return event{}, earlierTime(until, due), nil
		}
		w.next++
		w.sentVersion = e.version
		return e, now, nil
	}
	if w.nextBookmark.IsZero() {
		return event{}, until, nil
	}
	if !now.Before(w.nextBookmark) {
		w.nextBookmark = now.Add(bookmarkInterval)
		if w.sentVersion < s.version {
			w.sentVersion = s.version
			return event{kind: watch.Bookmark, version: w.sentVersion, at: now}, now, nil
		}
	}
	return event{}, earlierTime(until, w.nextBookmark), nil
}

func earlierTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (w *watcher) failWatch() (event, time.Time, error) {
	err := w.failure
	if statusErr, ok := errors.AsType[*apierrors.StatusError](err); ok {
		w.failure = io.EOF
		status := statusErr.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return event{kind: watch.Error, status: &status}, time.Time{}, nil
	}
	return event{}, time.Time{}, err
}

// selectEvent turns the event of an object that no longer matches into a deletion.
func (w *watcher) selectEvent(e event) (event, bool) {
	matches := e.kind != watch.Deleted && w.sel.matchesObject(e.object)
	before := e.previous != nil && w.sel.matchesObject(e.previous)
	switch {
	case matches && before:
		e.kind = watch.Modified
	case matches:
		e.kind = watch.Added
	case before:
		if e.kind != watch.Deleted { // the last matching state, with the version of the write that ended it
			gone := copyObject(e.previous)
			gone.SetResourceVersion(strconv.FormatUint(e.version, 10))
			e.object = gone
		}
		e.kind = watch.Deleted
	}
	return e, matches || before
}

func (w *watcher) encodeEvent(e event) error {
	var o runtime.Object = e.object
	switch {
	case e.kind == watch.Bookmark:
		o = w.newBookmark(e)
	case e.kind == watch.Error:
		o = e.status
	case w.metadata:
		o = objectMetadata(e.object)
	}
	var out bytes.Buffer
	if err := w.info.Serializer.Encode(o, &out); err != nil {
		return fmt.Errorf("encoding %T: %w", o, err)
	}
	frame := metav1.WatchEvent{Type: string(e.kind), Object: runtime.RawExtension{Raw: out.Bytes()}}
	return w.info.StreamSerializer.Encode(&frame, w.frames)
}

// newBookmark without a time marks the end of the initial events.
func (w *watcher) newBookmark(e event) runtime.Object {
	o := w.r.kind.newObject()
	o.SetResourceVersion(strconv.FormatUint(e.version, 10))
	if e.at.IsZero() {
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if w.metadata {
		return objectMetadata(o)
	}
	return o
}

// breakWatches requires the lock.
func (s *Server) breakWatches(chosen func(*watcher) bool, with error) int {
	n := 0
	for _, st := range s.stores {
		for w := range st.watchers {
			if chosen(w) && w.failure == nil {
				w.failure = with
				w.wakeReader()
				n++
			}
		}
	}
	return n
}
