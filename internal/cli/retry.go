// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
)

// RetryCommand requests retries.
type RetryCommand struct {
	API       client.Client
	Namespace string // empty means all, for Failed only
	Out       io.Writer
	JSON      bool
}

// RetriedPool is a BackendPool to retry.
type RetriedPool struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	// NotBefore is a pending Retry-After, which the retry respects.
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}

// RetryPools retries BackendPools by name or service/NAME. If one is missing, it retries none.
func (d RetryCommand) RetryPools(ctx context.Context, names []string, now time.Time) error {
	pools, err := ListPools(ctx, d.API, d.Namespace)
	if err != nil {
		return err
	}
	chosen, err := SelectPools(pools, d.Namespace, names)
	if err != nil {
		return err
	}
	return d.annotatePools(ctx, chosen, now)
}

// RetryFailed retries all BackendPools in state Failed or Retrying.
func (d RetryCommand) RetryFailed(ctx context.Context, now time.Time) error {
	pools, err := ListPools(ctx, d.API, d.Namespace)
	if err != nil {
		return err
	}
	var failed []v1alpha1.BackendPool
	for i := range pools {
		if state := PoolState(&pools[i]); state == v1alpha1.ReasonFailed || state == v1alpha1.ReasonRetrying {
			failed = append(failed, pools[i])
		}
	}
	return d.annotatePools(ctx, failed, now)
}

func (d RetryCommand) annotatePools(ctx context.Context, pools []v1alpha1.BackendPool, now time.Time) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RetryNowAnnotation, now.UTC().Format(time.RFC3339Nano))
	retried, failed := []RetriedPool{}, []error{}
	for i := range pools {
		p := &pools[i]
		is := RetriedPool{Namespace: p.Namespace, Name: p.Name, State: PoolState(p)}
		if at := p.Status.NextEligibleAt; at != nil && at.After(now) {
			is.NotBefore = at
		}
		of := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		of.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("BackendPool"))
		if err := d.API.Patch(ctx, of, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			failed = append(failed, fmt.Errorf("BackendPool %s/%s: %w", p.Namespace, p.Name, err))
			continue
		}
		retried = append(retried, is)
	}
	return errors.Join(append(failed, d.printResults(retried))...)
}

func (d RetryCommand) printResults(retried []RetriedPool) error {
	if d.JSON {
		return json.NewEncoder(d.Out).Encode(retried)
	}
	if len(retried) == 0 {
		_, err := fmt.Fprintln(d.Out, "No BackendPool has failed.")
		return err
	}
	for _, p := range retried {
		when := "is tried again now"
		switch {
		case p.State == v1alpha1.ReasonPaused:
			when = "is retried after the pause (weir resume)"
		case p.NotBefore != nil:
			when = "is tried again at " + humanize.FormatTime(p.NotBefore.Time) + ", not before, because of Azure's Retry-After"
		}
		if _, err := fmt.Fprintf(d.Out, "backendpool %s/%s %s; it was %s\n", p.Namespace, p.Name, when, p.State); err != nil {
			return err
		}
	}
	return nil
}
