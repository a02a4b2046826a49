// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// direct is the client of Get, Put and Delete, which faults do not affect.
const direct = "direct"

// Get returns an object. The resource is a path segment, such as services or backendpools.
func (s *Server) Get(resource, namespace, name string) (runtime.Object, error) {
	r, err := s.directly(verbGet, resource, namespace, name)
	if err != nil {
		return nil, err
	}
	return s.done(r, func() (object, error) { return s.get(r) })
}

// List returns the objects of a namespace; empty lists all.
func (s *Server) List(resource, namespace string) ([]runtime.Object, error) {
	r, err := s.directly(verbList, resource, namespace, "")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stores[r.kind]
	var all []runtime.Object
	for _, at := range st.keys() {
		if o := st.objects[at]; namespace == "" || o.GetNamespace() == namespace {
			all = append(all, o.DeepCopyObject())
		}
	}
	return all, nil
}

// Put creates or replaces an object, including its status.
func (s *Server) Put(o runtime.Object) (runtime.Object, error) {
	next, k, err := s.typed(o)
	if err != nil {
		return nil, err
	}
	r := &request{client: direct, verb: verbUpdate, kind: k, namespace: next.GetNamespace(), name: next.GetName(), query: url.Values{}}
	r.query.Set("fieldManager", direct)
	return s.done(r, func() (object, error) {
		live, err := s.get(r)
		if err != nil {
			r.verb = verbCreate
			if live, err = s.create(r, copyOf(next)); err != nil || !k.status {
				return live, err
			}
		} else if live, err = s.replace(r, k.managers.wrote(k, live, unversioned(next, live), r), live); err != nil || !k.status {
			return live, err
		}
		r.subresource = "status"
		return s.replace(r, k.managers.wrote(k, live, unversioned(next, live), r), live)
	})
}

// unversioned prepares an object to overwrite the live one unconditionally.
func unversioned(next, live object) object {
	o := copyOf(next)
	o.SetResourceVersion(live.GetResourceVersion())
	o.SetUID(live.GetUID())
	return o
}

// Delete deletes an object with default options.
func (s *Server) Delete(resource, namespace, name string) error {
	r, err := s.directly(verbDelete, resource, namespace, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err = s.remove(r)
	return err
}

// typed returns an object in its stored form, and its kind.
func (s *Server) typed(o runtime.Object) (object, *kind, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		kinds, _, err := scheme.ObjectKinds(o)
		if err != nil {
			return nil, nil, fmt.Errorf("%T names no kind: %w", o, err)
		}
		gvk = kinds[0]
	}
	k := s.kindOf(gvk)
	if k == nil {
		return nil, nil, fmt.Errorf("no %s is served here", gvk)
	}
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(gvk)
	body, err := runtime.Encode(inJSON.Serializer, o)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding %T: %w", o, err)
	}
	next, err := decode(k, runtime.ContentTypeJSON, body)
	return next, k, err
}

func (s *Server) kindOf(gvk schema.GroupVersionKind) *kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds[gvk.GroupVersion().String()] {
		if k.gvk == gvk {
			return k
		}
	}
	return nil
}

func (s *Server) directly(verb, resource, namespace, name string) (*request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kinds := range s.kinds {
		if k := kinds[strings.ToLower(resource)]; k != nil {
			return &request{client: direct, verb: verb, kind: k, namespace: namespace, name: name, query: url.Values{}}, nil
		}
	}
	return nil, fmt.Errorf("no %s are served here", resource)
}

// done runs a function with the lock held and returns a copy of its result.
func (s *Server) done(r *request, what func() (object, error)) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := what()
	if err != nil {
		return nil, fmt.Errorf("%s %s %s: %w", r.verb, r.resource(), key(r.namespace, r.name), err)
	}
	return o.DeepCopyObject(), nil
}
