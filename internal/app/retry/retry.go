// SPDX-License-Identifier: Apache-2.0

// Package retry is weir retry: it asks the controller to try BackendPools again, with the rights of whoever calls.
package retry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// Desk asks for retries.
type Desk struct {
	API       client.Client
	Namespace string // empty is all, for Failed alone
	Out       io.Writer
	JSON      bool
}

// Pool is one that is tried again.
type Pool struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State is how it stood when it was asked for.
	State string `json:"state"`
}

// Of asks for BackendPools by name, and for those of service/NAME. Nothing is asked for if one of them is not there.
func (d Desk) Of(ctx context.Context, names []string, now time.Time) error {
	pools, err := d.pools(ctx)
	if err != nil {
		return err
	}
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
			missing = append(missing, fmt.Errorf("no BackendPool of namespace %s is for Service %q: kubectl get backendpools -n %[1]s", d.Namespace, service))
		default:
			missing = append(missing, fmt.Errorf("namespace %s has no BackendPool %q: kubectl get backendpools -n %[1]s; those of a Service are service/NAME", d.Namespace, name))
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
	}
	return d.ask(ctx, chosen, now)
}

// Failed asks for all that are not as they have to be, and that nobody keeps from it.
func (d Desk) Failed(ctx context.Context, now time.Time) error {
	pools, err := d.pools(ctx)
	if err != nil {
		return err
	}
	var failed []v1alpha1.BackendPool
	for _, p := range pools {
		if state := stateOf(p); state == v1alpha1.ReasonFailed || state == v1alpha1.ReasonRetrying {
			failed = append(failed, p)
		}
	}
	return d.ask(ctx, failed, now)
}

func (d Desk) pools(ctx context.Context) ([]v1alpha1.BackendPool, error) {
	var all v1alpha1.BackendPoolList
	if err := d.API.List(ctx, &all, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("BackendPools: %w", err)
	}
	return all.Items, nil
}

// ask has the controller hear of each, and says of which.
func (d Desk) ask(ctx context.Context, pools []v1alpha1.BackendPool, now time.Time) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RetryNowAnnotation, now.UTC().Format(time.RFC3339Nano))
	asked, failed := []Pool{}, []error{}
	for i := range pools {
		p := &pools[i]
		is := Pool{p.Namespace, p.Name, stateOf(*p)}
		of := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		of.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("BackendPool"))
		if err := d.API.Patch(ctx, of, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			failed = append(failed, fmt.Errorf("BackendPool %s/%s: %w", p.Namespace, p.Name, err))
			continue
		}
		asked = append(asked, is)
	}
	return errors.Join(append(failed, d.say(asked))...)
}

func (d Desk) say(asked []Pool) error {
	if d.JSON {
		return json.NewEncoder(d.Out).Encode(asked)
	}
	if len(asked) == 0 {
		_, err := fmt.Fprintln(d.Out, "No BackendPool has failed.")
		return err
	}
	for _, p := range asked {
		if _, err := fmt.Fprintf(d.Out, "backendpool %s/%s is tried again (%s)\n", p.Namespace, p.Name, p.State); err != nil {
			return err
		}
	}
	return nil
}

func stateOf(p v1alpha1.BackendPool) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		return c.Reason
	}
	return v1alpha1.ReasonPending
}
