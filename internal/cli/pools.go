// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// ListPools lists the BackendPools of a namespace; empty means all.
func ListPools(ctx context.Context, api client.Reader, namespace string) ([]v1alpha1.BackendPool, error) {
	var list v1alpha1.BackendPoolList
	if err := api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("BackendPools: %w", err)
	}
	return list.Items, nil
}

// PoolState returns the reason of the Synced condition.
func PoolState(p *v1alpha1.BackendPool) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		return c.Reason
	}
	return v1alpha1.ReasonPending
}
