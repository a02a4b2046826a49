// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// collect schedules the deletion of objects that lost their last owner. Requires the lock.
func (s *Server) collect(owner types.UID) {
	for k, st := range s.stores {
		for _, o := range st.objects {
			if owns(owner, o) {
				s.mayBeCollected(k, o)
			}
		}
	}
}

func owns(owner types.UID, o object) bool {
	for _, ref := range o.GetOwnerReferences() {
		if ref.UID == owner {
			return true
		}
	}
	return false
}

// mayBeCollected schedules a check of an object whose owners are all gone. Requires the lock.
func (s *Server) mayBeCollected(k *kind, o object) {
	if s.closed || !s.orphaned(o) && !k.empties(o) {
		return
	}
	at, uid := key(o.GetNamespace(), o.GetName()), o.GetUID()
	var t *time.Timer
	s.collecting.Add(1)
	t = time.AfterFunc(s.opts.CollectAfter, func() {
		defer s.collecting.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.collections, t)
		if is, ok := s.stores[k].objects[at]; ok && is.GetUID() == uid && !s.closed {
			s.collected(k, is)
		}
	})
	s.collections[t] = struct{}{}
}

// collected deletes an object as the garbage collector does. Requires the lock.
func (s *Server) collected(k *kind, o object) {
	switch {
	case k.empties(o):
		s.empty(k, o)
	case s.orphaned(o):
		r := &request{client: "garbage-collector", verb: verbDelete, kind: k, namespace: o.GetNamespace(), name: o.GetName()}
		_, status, err := s.remove(r)
		s.noteLocked(r, status, err)
	}
}

// orphaned reports whether an object has owners and none of them exists.
func (s *Server) orphaned(o object) bool {
	owners := o.GetOwnerReferences()
	if len(owners) == 0 {
		return false
	}
	for _, ref := range owners {
		for k, st := range s.stores {
			if k.gvk.Kind != ref.Kind {
				continue
			}
			namespace := o.GetNamespace()
			if !k.namespaced {
				namespace = ""
			}
			if is, ok := st.objects[key(namespace, ref.Name)]; ok && is.GetUID() == ref.UID {
				return false
			}
		}
	}
	return true
}

// empties reports whether an object is a terminating namespace.
func (k *kind) empties(o object) bool { return k.terminating != nil && o.GetDeletionTimestamp() != nil }

// empty deletes a namespace's contents, and the namespace when nothing is left.
func (s *Server) empty(k *kind, namespace object) {
	left := false
	for of, st := range s.stores {
		for _, at := range slices.Clone(st.keys()) {
			o := st.objects[at]
			if !of.namespaced || o.GetNamespace() != namespace.GetName() {
				continue
			}
			left = true
			r := &request{client: "namespace-controller", verb: verbDelete, kind: of, namespace: o.GetNamespace(), name: o.GetName()}
			if o.GetDeletionTimestamp() == nil {
				_, status, err := s.remove(r)
				s.noteLocked(r, status, err)
			}
		}
	}
	if left || len(namespace.GetFinalizers()) > 0 {
		s.mayBeCollected(k, namespace)
		return
	}
	s.gone(k, namespace)
}
