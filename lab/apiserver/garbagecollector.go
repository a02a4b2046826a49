// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// collectOrphans requires the lock, as do the functions below.
func (s *Server) collectOrphans(owner types.UID) {
	for k, st := range s.stores {
		for _, o := range st.objects {
			if hasOwner(owner, o) {
				s.scheduleCollection(k, o)
			}
		}
	}
}

func hasOwner(owner types.UID, o object) bool {
	for _, ref := range o.GetOwnerReferences() {
		if ref.UID == owner {
			return true
		}
	}
	return false
}

// scheduleCollection checks again after a delay.
func (s *Server) scheduleCollection(k *resourceKind, o object) {
	if s.closed || !s.isOrphaned(o) && !k.isTerminatingNamespace(o) {
		return
	}
	at, uid := objectKey(o.GetNamespace(), o.GetName()), o.GetUID()
	var t *time.Timer
	s.pendingCollections.Add(1)
	t = time.AfterFunc(s.opts.CollectionDelay, func() {
		defer s.pendingCollections.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.collectionTimers, t)
		if got, ok := s.stores[k].objects[at]; ok && got.GetUID() == uid && !s.closed {
			s.deleteCollected(k, got)
		}
	})
	s.collectionTimers[t] = struct{}{}
}

func (s *Server) deleteCollected(k *resourceKind, o object) {
	switch {
	case k.isTerminatingNamespace(o):
		s.emptyNamespace(k, o)
	case s.isOrphaned(o):
		r := &request{client: "garbage-collector", verb: verbDelete, kind: k, namespace: o.GetNamespace(), name: o.GetName()}
		_, status, err := s.removeObject(r)
		s.recordRequestLocked(r, status, err)
	}
}

// isOrphaned is false for an object without owners.
func (s *Server) isOrphaned(o object) bool {
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
			if got, ok := st.objects[objectKey(namespace, ref.Name)]; ok && got.GetUID() == ref.UID {
				return false
			}
		}
	}
	return true
}

func (k *resourceKind) isTerminatingNamespace(o object) bool {
	return k.setTerminating != nil && o.GetDeletionTimestamp() != nil
}

func (s *Server) emptyNamespace(k *resourceKind, namespace object) {
	left := false
	for of, st := range s.stores {
		for _, at := range slices.Clone(st.sortedKeys()) {
			o := st.objects[at]
			if !of.namespaced || o.GetNamespace() != namespace.GetName() {
				continue
			}
			left = true
			r := &request{client: "namespace-controller", verb: verbDelete, kind: of, namespace: o.GetNamespace(), name: o.GetName()}
			if o.GetDeletionTimestamp() == nil {
				_, status, err := s.removeObject(r)
				s.recordRequestLocked(r, status, err)
			}
		}
	}
	if left || len(namespace.GetFinalizers()) > 0 {
		s.scheduleCollection(k, namespace)
		return
	}
	s.deleteObject(k, namespace)
}
