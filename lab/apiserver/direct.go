// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// directClient is the client of Get, Put and Delete, which faults do not affect.
const directClient = "direct"

// Get returns an object. The resource is plural, e.g. services.
func (s *Server) Get(resource, namespace, name string) (runtime.Object, error) {
	r, err := s.directRequest(verbGet, resource, namespace, name)
	if err != nil {
		return nil, err
	}
	return s.runLocked(r, func() (object, error) { return s.getObject(r) })
}

// List returns the objects of a namespace; empty lists all.
func (s *Server) List(resource, namespace string) ([]runtime.Object, error) {
	r, err := s.directRequest(verbList, resource, namespace, "")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stores[r.kind]
	var objects []runtime.Object
	for _, at := range st.sortedKeys() {
		if o := st.objects[at]; namespace == "" || o.GetNamespace() == namespace {
			objects = append(objects, o.DeepCopyObject())
		}
	}
	return objects, nil
}

// Put creates or replaces an object, including its status.
func (s *Server) Put(o runtime.Object) (runtime.Object, error) {
	next, k, err := s.toStored(o)
	if err != nil {
		return nil, err
	}
	r := &request{client: directClient, verb: verbUpdate, kind: k, namespace: next.GetNamespace(), name: next.GetName(), query: url.Values{}}
	r.query.Set("fieldManager", directClient)
	return s.runLocked(r, func() (object, error) {
		live, err := s.getObject(r)
		if err != nil {
			r.verb = verbCreate
			if live, err = s.createObject(r, copyObject(next)); err != nil || !k.status {
				return live, err
			}
		} else if live, err = s.replaceObject(r, k.managers.updateOwnership(k, live, overwriteObject(next, live), r), live); err != nil || !k.status {
			return live, err
		}
		r.subresource = "status"
		return s.replaceObject(r, k.managers.updateOwnership(k, live, overwriteObject(next, live), r), live)
	})
}

func overwriteObject(next, live object) object {
	o := copyObject(next)
	o.SetResourceVersion(live.GetResourceVersion())
	o.SetUID(live.GetUID())
	return o
}

// Delete deletes an object with default options.
func (s *Server) Delete(resource, namespace, name string) error {
	r, err := s.directRequest(verbDelete, resource, namespace, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err = s.removeObject(r)
	return err
}

func (s *Server) toStored(o runtime.Object) (object, *resourceKind, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := scheme.ObjectKinds(o)
		if err != nil {
			return nil, nil, fmt.Errorf("%T names no kind: %w", o, err)
		}
		gvk = kinds[0]
	}
	k := s.findKind(gvk)
	if k == nil {
		return nil, nil, fmt.Errorf("no %s is served here", gvk)
	}
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(gvk)
	body, err := runtime.Encode(inJSON.Serializer, o)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding %T: %w", o, err)
	}
	next, err := decodeObject(k, runtime.ContentTypeJSON, body)
	return next, k, err
}

func (s *Server) findKind(gvk schema.GroupVersionKind) *resourceKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds[gvk.GroupVersion().String()] {
		if k.gvk == gvk {
			return k
		}
	}
	return nil
}

func (s *Server) directRequest(verb, resource, namespace, name string) (*request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kinds := range s.kinds {
		if k := kinds[strings.ToLower(resource)]; k != nil {
			return &request{client: directClient, verb: verb, kind: k, namespace: namespace, name: name, query: url.Values{}}, nil
		}
	}
	return nil, fmt.Errorf("no %s are served here", resource)
}

// runLocked holds the lock and returns a copy.
func (s *Server) runLocked(r *request, fn func() (object, error)) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := fn()
	if err != nil {
		return nil, fmt.Errorf("%s %s %s: %w", r.verb, r.resourceName(), objectKey(r.namespace, r.name), err)
	}
	return o.DeepCopyObject(), nil
}
