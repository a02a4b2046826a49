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

// resourceKind is a resource type and its strategy.
type resourceKind struct {
	gvk        schema.GroupVersionKind
	resource   string
	shortNames []string
	namespaced bool
	status     bool
	// allowsUnconditional updates may omit the resource version.
	allowsUnconditional bool
	// createsOnUpdate: an update may create.
	createsOnUpdate bool
	// returnsDeleted: a delete returns the object instead of a Status.
	returnsDeleted bool
	// nil for built-in types
	crd *customDefinition

	validateName validation.ValidateNameFunc
	setDefaults  func(next object)
	// before is nil on create
	prepare func(next, before object)
	// allocate also allocates unique values such as node ports.
	allocate func(s *Server, next, before object) field.ErrorList
	validate func(next, before object) field.ErrorList
	// specChanged reports a change of the spec; nil for kinds without generation.
	specChanged func(next, before object) bool
	// other than name and namespace
	selectableFields func(o object) fields.Set
	// What a request must not write: a status write retains the spec.
	clearStatus func(next object)
	// Kinds that set terminating are never deleted at once.
	setTerminating func(next object)
	retainStatus   func(next, before object)
	retainSpec     func(next, before object)

	managers fieldManagers
}

func (k *resourceKind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

func (k *resourceKind) listKind() schema.GroupVersionKind {
	return k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List")
}

func (k *resourceKind) newObject() object {
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

func copyObject(o object) object { return o.DeepCopyObject().(object) }

func typedUpdate[T runtime.Object](fn func(next, before T)) func(next, before object) {
	return func(next, before object) {
		old, _ := before.(T)
		fn(next.(T), old)
	}
}

func typedObject[T runtime.Object](fn func(next T)) func(object) {
	return func(next object) { fn(next.(T)) }
}

func builtInKinds() []*resourceKind {
	core, discovery, coordination := corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion
	return []*resourceKind{
		serviceKind(core.WithKind("Service")),
		{
			gvk: core.WithKind("Node"), resource: "nodes", shortNames: []string{"no"}, status: true, allowsUnconditional: true,
			validateName: validation.NameIsDNSSubdomain, prepare: typedUpdate(prepareNode), validate: validateNode, selectableFields: nodeFields,
			retainStatus: typedUpdate(func(n, before *corev1.Node) { before.Status.DeepCopyInto(&n.Status) }),
			retainSpec:   typedUpdate(func(n, before *corev1.Node) { before.Spec.DeepCopyInto(&n.Spec) }),
		},
		{ // without defaults: no kubelet runs it, and a deletion has no grace period
			gvk: core.WithKind("Pod"), resource: "pods", shortNames: []string{"po"}, namespaced: true, status: true, allowsUnconditional: true, returnsDeleted: true,
			validateName: validation.NameIsDNSSubdomain,
			clearStatus:  typedObject(func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }),
			retainStatus: typedUpdate(func(p, before *corev1.Pod) { before.Status.DeepCopyInto(&p.Status) }),
			retainSpec:   typedUpdate(func(p, before *corev1.Pod) { before.Spec.DeepCopyInto(&p.Spec) }),
		},
		{
			gvk: core.WithKind("Namespace"), resource: "namespaces", shortNames: []string{"ns"}, status: true, allowsUnconditional: true,
			returnsDeleted: true, validateName: validation.ValidateNamespaceName, setDefaults: typedObject(defaultNamespace), prepare: typedUpdate(prepareNamespace),
			selectableFields: func(o object) fields.Set {
				return fields.Set{"status.phase": string(o.(*corev1.Namespace).Status.Phase)}
			},
			clearStatus: typedObject(func(n *corev1.Namespace) { n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive} }),
			retainStatus: typedUpdate(func(n, before *corev1.Namespace) {
				before.Spec.DeepCopyInto(&n.Spec)
				before.Status.DeepCopyInto(&n.Status)
			}),
			retainSpec:     typedUpdate(func(n, before *corev1.Namespace) { before.Spec.DeepCopyInto(&n.Spec) }),
			setTerminating: typedObject(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }),
		},
		{
			gvk: core.WithKind("ConfigMap"), resource: "configmaps", shortNames: []string{"cm"}, namespaced: true, allowsUnconditional: true,
			validateName: validation.NameIsDNSSubdomain,
		},
		{
			gvk: core.WithKind("Event"), resource: "events", shortNames: []string{"ev"}, namespaced: true, allowsUnconditional: true, createsOnUpdate: true,
			validateName: validation.NameIsDNSSubdomain, selectableFields: eventFields,
		},
		{
			gvk: discovery.WithKind("EndpointSlice"), resource: "endpointslices", namespaced: true, allowsUnconditional: true,
			validateName: validation.NameIsDNSSubdomain, setDefaults: typedObject(defaultSlice), validate: validateSlice, specChanged: sliceChanged,
		},
		{
			gvk: coordination.WithKind("Lease"), resource: "leases", namespaced: true, createsOnUpdate: true,
			validateName: validation.NameIsDNSSubdomain,
		},
	}
}
