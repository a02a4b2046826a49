// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

// idleCluster is an idle cluster: Deployment and Service web with two pods.
type idleCluster struct {
	deployment appsv1.Deployment
	services   []corev1.Service
	slice      discoveryv1.EndpointSlice
	pod        corev1.Pod
}

func atRest() *idleCluster {
	named := metav1.ObjectMeta{Name: "web", Generation: 2}
	return &idleCluster{
		deployment: appsv1.Deployment{
			ObjectMeta: named, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2},
		},
		services: []corev1.Service{{ObjectMeta: named, Spec: corev1.ServiceSpec{Selector: map[string]string{appLabel: "web"}}}},
		slice: discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "web-x", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Endpoints:  []discoveryv1.Endpoint{onNode("a", yes, yes, no), onNode("b", yes, yes, no)},
		},
		pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}},
	}
}

func (i *idleCluster) pendingChange() string {
	return pendingChange([]appsv1.Deployment{i.deployment}, i.services, []discoveryv1.EndpointSlice{i.slice}, []corev1.Pod{i.pod})
}

func TestUnrest(t *testing.T) {
	if reason := atRest().pendingChange(); reason != "" {
		t.Fatal(reason)
	}
	for want, disturb := range map[string]func(*idleCluster){
		"Deployment web has 2 of 3":         func(s *idleCluster) { s.deployment.Spec.Replicas = new(int32(3)) },
		"Deployment web has 1 of 2":         func(s *idleCluster) { s.deployment.Status.ReadyReplicas = 1 },
		"Deployment web has 0 of 2":         func(s *idleCluster) { s.deployment.Status.UpdatedReplicas = 0 },
		"Deployment web has 2 of 2":         func(s *idleCluster) { s.deployment.Generation = 3 },
		"Pod web-1 is on its way out":       func(s *idleCluster) { s.pod.DeletionTimestamp = new(metav1.Now()) },
		"has an endpoint that is not ready": func(s *idleCluster) { s.slice.Endpoints[0] = onNode("a", no, yes, yes) },
		"the slices of web have 1 of 2":     func(s *idleCluster) { s.slice.Endpoints = s.slice.Endpoints[:1] },
		"web-x outlives its Service":        func(s *idleCluster) { s.services = nil },
	} {
		s := atRest()
		disturb(s)
		if got := s.pendingChange(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestContradicts(t *testing.T) {
	status := func(synced metav1.ConditionStatus, reason string, desired, observed int32) *v1alpha1.BackendPoolStatus {
		return &v1alpha1.BackendPoolStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSynced, Status: synced, Reason: reason}},
			Desired:    &desired, Observed: &observed,
		}
	}
	two := poolState{desired: 2, total: 3}
	for _, c := range []struct {
		name   string
		status *v1alpha1.BackendPoolStatus
		seen   poolState
		agrees bool
	}{
		{"in sync", status("True", "InSync", 2, 3), two, true},
		{"nothing said", &v1alpha1.BackendPoolStatus{}, two, false},
		{"under way", status("False", "Updating", 2, 3), two, false},
		{"desires another number", status("True", "InSync", 1, 3), two, false},
		{"observes another number", status("True", "InSync", 2, 2), two, false},
		{"its Service gone", status("False", "ServiceNotFound", 0, 3), two, false},
	} {
		if reason := statusContradiction(c.status, c.seen); (reason == "") != c.agrees {
			t.Errorf("%s: %q", c.name, reason)
		}
	}
}
