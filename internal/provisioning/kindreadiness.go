// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds with readiness rules stricter than kstatus.
var (
	jobKind              = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind              = schema.GroupKind{Kind: "Pod"}
	claimKind            = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volumeKind           = schema.GroupKind{Kind: "PersistentVolume"}
	serviceKind          = schema.GroupKind{Kind: "Service"}
	replicationKind      = schema.GroupKind{Kind: "ReplicationController"}
	replicaSetKind       = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	deploymentKind       = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSetKind      = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	disruptionBudgetKind = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
	apiServiceKind       = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// checkKind returns what keeps an object from being ready even if kstatus reports Current, and why it
// can never be ready. Neither quotes the object.
func checkKind(u *unstructured.Unstructured, waited bool) (lacks, failed string) {
	if reason := checkGeneration(u); reason != "" {
		return reason, ""
	}
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	switch u.GroupVersionKind().GroupKind() {
	case jobKind:
		return messageUnless(conditionOf(u, "Complete") == "True", "the Job is not Complete"), ""
	case podKind:
		return "", messageUnless(phase != "Failed", "the Pod has failed")
	case claimKind:
		bound := phase == "Bound" || phase == "Pending" && !waited // WaitForFirstConsumer: a later step may create the pod
		return messageUnless(bound, "the claim is not Bound"), messageUnless(phase != "Lost", "the claim has lost its volume")
	case volumeKind:
		available := phase == "Available" || phase == "Bound" || phase == "Released"
		return messageUnless(available, "the volume is not Available"), messageUnless(phase != "Failed", "the volume has failed")
	case serviceKind:
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
		ingress, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
		return messageUnless(kind != "LoadBalancer" || len(ingress) > 0 || !waited, "the Service has no address of a load balancer"), ""
	case deploymentKind, replicaSetKind, disruptionBudgetKind:
		return checkObserved(u), ""
	case replicationKind, statefulSetKind:
		if reason := checkObserved(u); reason != "" {
			return reason, ""
		}
		return checkReplicas(u), ""
	case apiServiceKind:
		return messageUnless(conditionOf(u, "Available") == "True", "the APIService is not Available"), ""
	}
	return messageUnless(!isStale(u, "Ready"), "its condition Ready is about an earlier generation"), ""
}

func messageUnless(ok bool, reason string) string {
	if ok {
		return ""
	}
	return reason
}

func checkObserved(u *unstructured.Unstructured) string {
	_, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return messageUnless(found, "no controller has seen it yet")
}

func checkReplicas(u *unstructured.Unstructured) string {
	wants, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		wants = 1
	}
	ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	return messageUnless(ready >= wants, fmt.Sprintf("%d of %d replicas are ready", ready, wants))
}

func checkGeneration(u *unstructured.Unstructured) string {
	if seen, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); found && seen != u.GetGeneration() && u.GetGeneration() > 0 {
		return fmt.Sprintf("its controller has seen generation %d of %d", seen, u.GetGeneration())
	}
	return ""
}

func isStale(u *unstructured.Unstructured, kind string) bool {
	for _, c := range conditionsOf(u) {
		if seen, ok := c["observedGeneration"].(int64); ok && c["type"] == kind {
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
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}

func conditionsOf(u *unstructured.Unstructured) (values []map[string]any) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok {
			values = append(values, c)
		}
	}
	return values
}
