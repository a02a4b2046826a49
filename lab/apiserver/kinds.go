// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type metaObject = metav1.Object

// kind is a kind of objects and what is special about it.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   string
	shortNames []string
	namespaced bool
	// status is whether it has a subresource of that name.
	status bool
	// unconditional updates may leave the resource version out.
	unconditional bool
	// upserts are updates that create what is not there.
	upserts bool
	// returned is the object to who deletes it; otherwise it is a Status.
	returned bool
	// crd is the definition of a custom resource; nil for the API's own types.
	crd *definition

	name validation.ValidateNameFunc
	// defaults fills in what a client left out, as soon as it is read.
	defaults func(next object)
	// prepare is what a write changes besides; the object before is nil for a new one.
	prepare func(next, before object)
	// admit gives what only one object can have, such as a node port; dry is for nobody to keep.
	admit func(s *Server, next, before object) field.ErrorList
	// validate returns what is wrong with an object.
	validate func(next, before object) field.ErrorList
	// generation reports whether a change is one of the spec; nil for kinds that do not count.
	generation func(next, before object) bool
	// fields can be selected by, besides the name and the namespace.
	fields func(o object) fields.Set
	// These keep of an object what a request does not write: a status write keeps the spec.
	clearStatus func(next object)
	// terminating changes an object that is deleted; of a kind that has it, none goes at once.
	terminating func(next object)
	keepStatus  func(next, before object)
	keepSpec    func(next, before object)

	managers managers
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

func (k *kind) listKind() schema.GroupVersionKind {
	return k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List")
}

// empty returns an object of the kind that says nothing else.
func (k *kind) empty() object {
	if k.crd != nil {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(k.gvk)
		return u
	}
	o, err := scheme.New(k.gvk)
	if err != nil {
		panic(err) // the scheme has all kinds of builtIn
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	return o.(object)
}

// copyOf returns an object that may be changed.
func copyOf(o object) object { return o.DeepCopyObject().(object) }

// on adapts a function on one of the API's types.
func on[T runtime.Object](fn func(next, before T)) func(next, before object) {
	return func(next, before object) {
		was, _ := before.(T)
		fn(next.(T), was)
	}
}

// one adapts a function that needs no other object.
func one[T runtime.Object](fn func(next T)) func(object) {
	return func(next object) { fn(next.(T)) }
}

// builtIn are the kinds of every cluster, as far as they are served.
func builtIn() []*kind {
	core, discovery, coordination := corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion
	return []*kind{
		serviceKind(core.WithKind("Service")),
		{
			gvk: core.WithKind("Node"), resource: "nodes", shortNames: []string{"no"}, status: true, unconditional: true,
			name: validation.NameIsDNSSubdomain, prepare: on(prepareNode), validate: validateNode, fields: nodeFields,
			keepStatus: on(func(n, was *corev1.Node) { was.Status.DeepCopyInto(&n.Status) }),
			keepSpec:   on(func(n, was *corev1.Node) { was.Spec.DeepCopyInto(&n.Spec) }),
		},
		{
			gvk: core.WithKind("Namespace"), resource: "namespaces", shortNames: []string{"ns"}, status: true, unconditional: true,
			returned: true, name: validation.ValidateNamespaceName, defaults: one(defaultNamespace), prepare: on(prepareNamespace),
			fields: func(o object) fields.Set {
				return fields.Set{"status.phase": string(o.(*corev1.Namespace).Status.Phase)}
			},
			clearStatus: one(func(n *corev1.Namespace) { n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive} }),
			keepStatus: on(func(n, was *corev1.Namespace) {
				was.Spec.DeepCopyInto(&n.Spec)
				was.Status.DeepCopyInto(&n.Status)
			}),
			keepSpec:    on(func(n, was *corev1.Namespace) { was.Spec.DeepCopyInto(&n.Spec) }),
			terminating: one(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }),
		},
		{
			gvk: core.WithKind("ConfigMap"), resource: "configmaps", shortNames: []string{"cm"}, namespaced: true, unconditional: true,
			name: validation.NameIsDNSSubdomain,
		},
		{
			gvk: core.WithKind("Event"), resource: "events", shortNames: []string{"ev"}, namespaced: true, unconditional: true, upserts: true,
			name: validation.NameIsDNSSubdomain, fields: eventFields,
		},
		{
			gvk: discovery.WithKind("EndpointSlice"), resource: "endpointslices", namespaced: true, unconditional: true,
			name: validation.NameIsDNSSubdomain, defaults: one(defaultSlice), validate: validateSlice, generation: sliceChanged,
		},
		{
			gvk: coordination.WithKind("Lease"), resource: "leases", namespaced: true, upserts: true,
			name: validation.NameIsDNSSubdomain,
		},
	}
}
