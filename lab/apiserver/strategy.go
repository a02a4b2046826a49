// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func defaultNamespace(n *corev1.Namespace) {
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

func prepareNamespace(n, before *corev1.Namespace) {
	if before == nil && !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
		n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

// prepareNode taints a new node as not ready; this server never removes the taint.
func prepareNode(n, before *corev1.Node) {
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if before == nil && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) }) {
		n.Spec.Taints = append(n.Spec.Taints, notReady)
	}
	if len(n.Spec.PodCIDRs) == 0 && n.Spec.PodCIDR != "" {
		n.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
	}
}

func validateNode(next, before object) field.ErrorList {
	n := next.(*corev1.Node)
	if old, _ := before.(*corev1.Node); old != nil && old.Spec.ProviderID != "" && old.Spec.ProviderID != n.Spec.ProviderID {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "providerID"), n.Spec.ProviderID, "field is immutable")}
	}
	return nil
}

func nodeFields(o object) fields.Set {
	unschedulable := "false"
	if o.(*corev1.Node).Spec.Unschedulable {
		unschedulable = "true"
	}
	return fields.Set{"spec.unschedulable": unschedulable}
}

func eventFields(o object) fields.Set {
	e := o.(*corev1.Event)
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	return fields.Set{
		"involvedObject.kind": e.InvolvedObject.Kind, "involvedObject.namespace": e.InvolvedObject.Namespace,
		"involvedObject.name": e.InvolvedObject.Name, "involvedObject.uid": string(e.InvolvedObject.UID),
		"involvedObject.apiVersion": e.InvolvedObject.APIVersion, "involvedObject.resourceVersion": e.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath": e.InvolvedObject.FieldPath, "reason": e.Reason, "reportingComponent": e.ReportingController,
		"source": source, "type": e.Type,
	}
}

func defaultSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Name == nil {
			p.Name = new("")
		}
		if p.Protocol == nil {
			p.Protocol = new(corev1.ProtocolTCP)
		}
	}
}

func validateSlice(next, before object) field.ErrorList {
	s := next.(*discoveryv1.EndpointSlice)
	at := field.NewPath("addressType")
	families := []discoveryv1.AddressType{discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
	switch old, _ := before.(*discoveryv1.EndpointSlice); {
	case s.AddressType == "":
		return field.ErrorList{field.Required(at, "")}
	case !slices.Contains(families, s.AddressType):
		return field.ErrorList{field.NotSupported(at, s.AddressType, families)}
	case old != nil && old.AddressType != s.AddressType:
		return field.ErrorList{field.Invalid(at, s.AddressType, "field is immutable")}
	}
	return nil
}

// sliceChanged counts labels, too: a slice has no spec.
func sliceChanged(next, before object) bool {
	s, old := next.(*discoveryv1.EndpointSlice), before.(*discoveryv1.EndpointSlice)
	return !equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) || !equality.Semantic.DeepEqual(s.Ports, old.Ports) ||
		s.AddressType != old.AddressType || !equality.Semantic.DeepEqual(s.Labels, old.Labels)
}
