// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds with readiness rules stricter than kstatus.
var (
	jobKind     = schema.GroupKind{Group: "batch", Kind: "Job"}
	pod         = schema.GroupKind{Kind: "Pod"}
	claim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volume      = schema.GroupKind{Kind: "PersistentVolume"}
	serviceKind = schema.GroupKind{Kind: "Service"}
	replication = schema.GroupKind{Kind: "ReplicationController"}
	replicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	stateful    = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	disruption  = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
	apiService  = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// lacksOf returns what keeps an object from being ready even if kstatus reports Current, and why it
// can never be ready. Neither quotes the object.
func lacksOf(u *unstructured.Unstructured, waited bool) (lacks, failed string) {
	if why := outdated(u); why != "" {
		return why, ""
	}
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	switch u.GroupVersionKind().GroupKind() {
	case jobKind:
		return unless(conditionOf(u, "Complete") == "True", "the Job is not Complete"), ""
	case pod:
		return "", unless(phase != "Failed", "the Pod has failed")
	case claim:
		bound := phase == "Bound" || phase == "Pending" && !waited // WaitForFirstConsumer: a later step may create the pod
		return unless(bound, "the claim is not Bound"), unless(phase != "Lost", "the claim has lost its volume")
	case volume:
		there := phase == "Available" || phase == "Bound" || phase == "Released"
		return unless(there, "the volume is not Available"), unless(phase != "Failed", "the volume has failed")
	case serviceKind:
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
		ingress, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
		return unless(kind != "LoadBalancer" || len(ingress) > 0 || !waited, "the Service has no address of a load balancer"), ""
	case deployment, replicaSet, disruption:
		return unobserved(u), ""
	case replication, stateful:
		if why := unobserved(u); why != "" {
			return why, ""
		}
		return replicas(u), ""
	case apiService:
		return unless(conditionOf(u, "Available") == "True", "the APIService is not Available"), ""
	}
	return unless(!isStale(u, "Ready"), "its condition Ready is about an earlier generation"), ""
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

func unobserved(u *unstructured.Unstructured) string {
	_, is, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return unless(is, "no controller has seen it yet")
}

func replicas(u *unstructured.Unstructured) string {
	wants, is, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !is {
		wants = 1
	}
	ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	return unless(ready >= wants, fmt.Sprintf("%d of %d replicas are ready", ready, wants))
}

func outdated(u *unstructured.Unstructured) string {
	if seen, is, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); is && seen != u.GetGeneration() && u.GetGeneration() > 0 {
		return fmt.Sprintf("its controller has seen generation %d of %d", seen, u.GetGeneration())
	}
	return ""
}

func isStale(u *unstructured.Unstructured, kind string) bool {
	for _, c := range conditionsOf(u) {
		if seen, is := c["observedGeneration"].(int64); is && c["type"] == kind {
			return seen > 0 && seen < u.GetGeneration()
		}
	}
	return false
}

func conditionOf(u *unstructured.Unstructured, kind string) string {
	if isStale(u, kind) {
		return ""
	}
	for _, c := range conditionsOf(u) {
		if c["type"] == kind {
			is, _ := c["status"].(string)
			return is
		}
	}
	return ""
}

func conditionsOf(u *unstructured.Unstructured) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if c, is := c.(map[string]any); is {
			all = append(all, c)
		}
	}
	return all
}
