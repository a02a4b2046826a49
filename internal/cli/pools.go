// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// ListPools lists the BackendPools of a namespace; empty means all.
func ListPools(ctx context.Context, api client.Reader, namespace string) ([]v1alpha1.BackendPool, error) {
	var all v1alpha1.BackendPoolList
	if err := api.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("BackendPools: %w", err)
	}
	return all.Items, nil
}

// SelectPools selects BackendPools by name, or by Service with service/NAME. If one is missing, it returns only an
// error.
func SelectPools(pools []v1alpha1.BackendPool, namespace string, names []string) ([]v1alpha1.BackendPool, error) {
	var chosen []v1alpha1.BackendPool
	var missing []error
	for _, name := range names {
		before := len(chosen)
		service, ofService := strings.CutPrefix(name, "service/")
		for _, p := range pools {
			if p.Name == name || ofService && p.Spec.ServiceRef != nil && p.Spec.ServiceRef.Name == service {
				chosen = append(chosen, p)
			}
		}
		switch {
		case len(chosen) > before:
		case ofService:
			missing = append(missing, fmt.Errorf("no BackendPool of namespace %s is for Service %q, which may use a pool that Services share: weir explain service %[2]s -n %[1]s names it", namespace, service))
		default:
			missing = append(missing, fmt.Errorf("namespace %s has no BackendPool %q: kubectl get backendpools -n %[1]s; those of a Service are service/NAME", namespace, name))
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	return chosen, nil
}

// PoolState returns the reason of the Synced condition.
func PoolState(p *v1alpha1.BackendPool) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		return c.Reason
	}
	return v1alpha1.ReasonPending
}
