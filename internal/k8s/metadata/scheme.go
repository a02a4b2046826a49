// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/service"
)

// Scheme returns the scheme of the types that Weir uses.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(discoveryv1.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(gatewayv1.Install(s))
	return s
}

// Strip adapts a function of one type to informers, which also pass tombstones.
func Strip[T any](fn func(*T)) func(any) (any, error) {
	return func(obj any) (any, error) {
		if o, ok := obj.(*T); ok {
			fn(o)
		}
		return obj, nil
	}
}

// Identity keeps the identifying metadata and these labels.
func Identity(m metav1.ObjectMeta, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: Intern(m.Namespace), Name: m.Name, UID: m.UID,
		ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: labels,
	}
}

// StripNamespace keeps labels, grants and limits.
func StripNamespace(n *corev1.Namespace) {
	var annotations map[string]string
	keep := func(name, value string) {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[name] = value
	}
	for _, name := range []string{service.LoadBalancersAnnotation, service.PublicIPAnnotation, service.GatewayLoadBalancersAnnotation} {
		if granted, ok := n.Annotations[name]; ok {
			keep(name, granted)
		}
	}
	for _, name := range service.NamespaceAnnotations {
		if value, ok := n.Annotations[name]; ok {
			keep(name, service.TruncateValue(value))
		}
	}
	*n = corev1.Namespace{ObjectMeta: Identity(n.ObjectMeta, n.Labels)}
	n.Annotations = annotations
}
