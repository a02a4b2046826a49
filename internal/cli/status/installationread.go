// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// labels select the Deployment of the controller, whatever its name.
var labels = client.MatchingLabels{"app.kubernetes.io/name": "weir", "app.kubernetes.io/component": "controller"}

// Severity is the result of a check, as in weir doctor.
type Severity string

// Results of a check.
const (
	OK      Severity = "OK"
	Warn    Severity = "WARN"
	Fail    Severity = "FAIL"
	Unknown Severity = "UNKNOWN"
)

// Finding is what a check of the installation found, and the fix.
type Finding struct {
	Severity Severity
	Why, Fix string
}

// Installation is Weir's Deployment with its pods.
type Installation struct {
	// Known is false if the caller may not list Deployments.
	Known bool
	// Deployment is nil if there is none.
	Deployment *appsv1.Deployment
	// Pods are read only if a replica is not ready. PodsUnseen is set if the caller may not list them.
	Pods       []corev1.Pod
	PodsUnseen bool
	// warnings are the latest Warning of each pod, by its UID.
	warnings map[string]corev1.Event
}

// ReadInstallation reads the installation of a namespace; empty means all namespaces.
func ReadInstallation(ctx context.Context, api client.Reader, namespace string) (Installation, error) {
	var list appsv1.DeploymentList
	switch err := api.List(ctx, &list, client.InNamespace(namespace), labels); {
	case apierrors.IsForbidden(err):
		return Installation{}, nil
	case err != nil:
		return Installation{}, fmt.Errorf("reading Deployments: %w", err)
	}
	installation := Installation{Known: true}
	if len(list.Items) == 0 {
		return installation, nil
	}
	installation.Deployment = &list.Items[0]
	if installation.isReady() {
		return installation, nil
	}
	return installation, installation.readPods(ctx, api)
}

func (i *Installation) readPods(ctx context.Context, api client.Reader) error {
	selector, err := metav1.LabelSelectorAsSelector(i.Deployment.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector of Deployment %s: %w", i.name(), err)
	}
	var pods corev1.PodList
	err = api.List(ctx, &pods, client.InNamespace(i.Deployment.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if i.PodsUnseen = apierrors.IsForbidden(err); i.PodsUnseen {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Pods: %w", err)
	}
	i.Pods = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	return i.readWarnings(ctx, api)
}

func (i *Installation) readWarnings(ctx context.Context, api client.Reader) error {
	var events corev1.EventList
	switch err := api.List(ctx, &events, client.InNamespace(i.Deployment.Namespace)); {
	case apierrors.IsForbidden(err):
		return nil // the states of the containers remain
	case err != nil:
		return fmt.Errorf("reading Events: %w", err)
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	i.warnings = map[string]corev1.Event{}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == "Pod" {
			i.warnings[string(e.InvolvedObject.UID)] = e
		}
	}
	return nil
}

func eventTime(e corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return cmp.Or(e.LastTimestamp.Time, e.EventTime.Time)
}
