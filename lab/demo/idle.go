// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// pendingChange returns what in the cluster is still changing, or "" if all desired pods run, none is
// terminating, and the EndpointSlices agree.
func (c *cluster) pendingChange(ctx context.Context) (string, error) {
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	var published discoveryv1.EndpointSliceList
	for _, list := range []client.ObjectList{&deployments, &services, &published} {
		if err := c.api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return "", err
		}
	}
	pods, err := c.listPods(ctx)
	if err != nil {
		return "", err
	}
	return pendingChange(deployments.Items, services.Items, published.Items, pods), nil
}

// statusMismatch returns where a BackendPool's status differs from the observed pool, or "". A pool in sync without that status is not done.
func (c *cluster) statusMismatch(ctx context.Context, pools []poolState) (string, error) {
	var list v1alpha1.BackendPoolList
	if err := c.api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	for _, p := range pools {
		on := backendPoolOf(list.Items, p.workload.poolName())
		switch {
		case on == nil && p.exists:
			return fmt.Sprintf("no BackendPool reports whether pool %s is in sync", p.workload.poolName()), nil
		case on == nil:
			continue
		}
		if reason := statusContradiction(&on.Status, p); reason != "" {
			return fmt.Sprintf("BackendPool %s %s", on.Name, reason), nil
		}
	}
	return "", nil
}

// backendPoolOf returns the BackendPool of an Azure pool, or nil.
func backendPoolOf(pools []v1alpha1.BackendPool, pool string) *v1alpha1.BackendPool {
	i := slices.IndexFunc(pools, func(p v1alpha1.BackendPool) bool { return p.Spec.PoolName == pool })
	if i < 0 {
		return nil
	}
	return &pools[i]
}

func statusContradiction(status *v1alpha1.BackendPoolStatus, p poolState) string {
	synced := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced)
	switch {
	case synced == nil:
		return "has no condition Synced: the controller has not looked at it"
	case synced.Status != metav1.ConditionTrue:
		return fmt.Sprintf("says Synced=%s, %s: %s", synced.Status, synced.Reason, synced.Message)
	case status.Desired == nil || int(*status.Desired) != p.desired:
		return fmt.Sprintf("does not say that %d addresses are desired", p.desired)
	case status.Observed == nil || int(*status.Observed) != p.total:
		return fmt.Sprintf("does not say that %d addresses are observed", p.total)
	}
	return ""
}

func pendingChange(deployments []appsv1.Deployment, services []corev1.Service, published []discoveryv1.EndpointSlice, pods []corev1.Pod) string {
	for i := range deployments {
		d, status := &deployments[i], &deployments[i].Status
		want := *d.Spec.Replicas
		if status.ObservedGeneration < d.Generation || status.Replicas != want || status.UpdatedReplicas != want || status.ReadyReplicas != want {
			return fmt.Sprintf("Deployment %s has %d of %d pods ready and up to date", d.Name, min(status.ReadyReplicas, status.UpdatedReplicas), want)
		}
	}
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			return fmt.Sprintf("Pod %s is on its way out", pods[i].Name)
		}
	}
	expected := map[string]int32{}
	for i := range services {
		expected[services[i].Name] = 0
		for j := range deployments {
			if deployments[j].Name == services[i].Spec.Selector[appLabel] {
				expected[services[i].Name] = *deployments[j].Spec.Replicas
			}
		}
	}
	return staleSlices(expected, published)
}

// staleSlices compares the EndpointSlices with the expected number of pods per Service.
func staleSlices(expected map[string]int32, published []discoveryv1.EndpointSlice) string {
	ready := map[string]int32{}
	for i := range published {
		service := published[i].Labels[discoveryv1.LabelServiceName]
		if _, ok := expected[service]; !ok {
			return fmt.Sprintf("EndpointSlice %s outlives its Service", published[i].Name)
		}
		for _, e := range published[i].Endpoints {
			if e.Conditions.Ready == nil || !*e.Conditions.Ready {
				return fmt.Sprintf("EndpointSlice %s has an endpoint that is not ready", published[i].Name)
			}
			ready[service]++
		}
	}
	for _, service := range slices.Sorted(maps.Keys(expected)) {
		if ready[service] != expected[service] {
			return fmt.Sprintf("the slices of %s have %d of %d endpoints", service, ready[service], expected[service])
		}
	}
	return ""
}
