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

// kind is a resource type and its strategy.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   string
	shortNames []string
	namespaced bool
	// status reports whether the kind has a status subresource.
	status bool
	// unconditional updates may omit the resource version.
	unconditional bool
	// upserts: an update of a missing object creates it.
	upserts bool
	// returned: a delete returns the object instead of a Status.
	returned bool
	// crd is the definition of a custom resource; nil for built-in types.
	crd *definition

	name validation.ValidateNameFunc
	// defaults sets defaults after decoding.
	defaults func(next object)
	// prepare applies other changes of a write; before is nil on create.
	prepare func(next, before object)
	// admit validates and allocates unique values such as node ports.
	admit func(s *Server, next, before object) field.ErrorList
	// validate returns the errors of an object.
	validate func(next, before object) field.ErrorList
	// generation reports whether a change increments the generation; nil for kinds without one.
	generation func(next, before object) bool
	// fields returns the selectable fields other than name and namespace.
	fields func(o object) fields.Set
	// The keep functions restore what a request does not write: a status write retains the spec.
	clearStatus func(next object)
	// terminating changes a deleted object; kinds that set it are never deleted at once.
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

// empty returns an empty object of the kind.
func (k *kind) empty() object {
	if k.crd != nil {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(k.gvk)
		return u
	}
	o, err := scheme.New(k.gvk)
	if err != nil {
		panic(err) // the scheme has all built-in kinds
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	return o.(object)
}

// copyOf returns a mutable copy.
func copyOf(o object) object { return o.DeepCopyObject().(object) }

// on adapts a function of one of the API's types.
func on[T runtime.Object](fn func(next, before T)) func(next, before object) {
	return func(next, before object) {
		was, _ := before.(T)
		fn(next.(T), was)
	}
}

// one adapts a function that needs no previous object.
func one[T runtime.Object](fn func(next T)) func(object) {
	return func(next object) { fn(next.(T)) }
}

// builtIn returns the built-in kinds.
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
