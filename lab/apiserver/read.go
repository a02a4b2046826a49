// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s *Server) getObject(r *request) (object, error) {
	o, ok := s.stores[r.kind].objects[objectKey(r.namespace, r.name)]
	if !ok {
		return nil, apierrors.NewNotFound(r.kind.groupResource(), r.name)
	}
	return o, nil
}

// listObjects ignores limit.
func (s *Server) listObjects(r *request) (runtime.Object, int, error) {
	sel, err := parseSelection(r)
	if err != nil {
		return nil, 0, err
	}
	if err := s.checkVersion(r); err != nil {
		return nil, 0, err
	}
	var objects []object
	st := s.stores[r.kind]
	for _, at := range st.sortedKeys() {
		if o := st.objects[at]; sel.matchesObject(o) {
			objects = append(objects, o)
		}
	}
	return newList(r.kind, objects, s.version), http.StatusOK, nil
}

func (s *Server) checkVersion(r *request) error {
	v, err := parseVersion(r.query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	if v <= s.version {
		return nil
	}
	late := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", v, s.version), 1)
	late.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return late
}

func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: strconv.ParseUint: parsing %q: invalid syntax", text, text))
	}
	return v, nil
}

func newList(k *resourceKind, objects []object, version uint64) runtime.Object {
	at := strconv.FormatUint(version, 10)
	if k.crd != nil {
		list := &unstructured.UnstructuredList{Object: map[string]any{}, Items: make([]unstructured.Unstructured, len(objects))}
		list.SetGroupVersionKind(k.listKind())
		list.SetResourceVersion(at)
		for i, o := range objects {
			list.Items[i] = *o.(*unstructured.Unstructured)
		}
		return list
	}
	list, err := scheme.New(k.listKind())
	if err != nil {
		panic(err) // the scheme has all list types
	}
	items := make([]runtime.Object, len(objects))
	for i, o := range objects {
		items[i] = o
	}
	if err := meta.SetList(list, items); err != nil {
		panic(err) // the types match
	}
	// Items are shallow copies; list items have no kind.
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		return nil
	})
	list.GetObjectKind().SetGroupVersionKind(k.listKind())
	list.(metav1.ListInterface).SetResourceVersion(at)
	return list
}

func toMetadataOnly(o runtime.Object) runtime.Object {
	if item, ok := o.(object); ok {
		return objectMetadata(item)
	}
	if !meta.IsListType(o) {
		return o
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: metav1.SchemeGroupVersion.String()}}
	if m, err := meta.ListAccessor(o); err == nil {
		list.ResourceVersion = m.GetResourceVersion()
	}
	_ = meta.EachListItem(o, func(item runtime.Object) error {
		p := objectMetadata(item.(object))
		list.Items = append(list.Items, *p)
		return nil
	})
	return list
}

type selection struct {
	kind      *resourceKind
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func parseSelection(r *request) (selection, error) {
	sel := selection{kind: r.kind, namespace: r.namespace, labels: labels.Everything(), fields: fields.Everything()}
	var err error
	if text := r.query.Get("labelSelector"); text != "" {
		if sel.labels, err = labels.Parse(text); err != nil {
			return sel, apierrors.NewBadRequest(err.Error())
		}
	}
	if text := r.query.Get("fieldSelector"); text != "" {
		if sel.fields, err = fields.ParseSelector(text); err != nil {
			return sel, apierrors.NewBadRequest(err.Error())
		}
		known := sel.fieldSet(r.kind.newObject())
		for _, q := range sel.fields.Requirements() {
			if !known.Has(q.Field) {
				return sel, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", q.Field))
			}
		}
	}
	return sel, nil
}

func (sel selection) fieldSet(o object) fields.Set {
	set := fields.Set{}
	if sel.kind.selectableFields != nil {
		set = sel.kind.selectableFields(o)
	}
	set["metadata.name"] = o.GetName()
	if sel.kind.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	return set
}

func (sel selection) matchesObject(o object) bool {
	return (sel.namespace == "" || o.GetNamespace() == sel.namespace) &&
		(sel.labels.Empty() || sel.labels.Matches(labels.Set(o.GetLabels()))) &&
		(sel.fields.Empty() || sel.fields.Matches(sel.fieldSet(o)))
}
