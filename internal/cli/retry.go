// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
)

// RetryCommand requests retries of BackendPools, and of writes of load balancers of Services and Gateways.
type RetryCommand struct {
	API       client.Client
	Namespace string // empty means all, for Failed only
	Out       io.Writer
	JSON      bool
}

// RetriedObject is a BackendPool, Service or Gateway to retry.
type RetriedObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	// NotBefore is a pending Retry-After, which the retry respects.
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}

// RetryPools retries BackendPools by name or service/NAME, and Services and gateway/NAME with a failed or contested write
// of their load balancer. If one is missing, it retries none.
func (r RetryCommand) RetryPools(ctx context.Context, names []string, now time.Time) error {
	pools, err := ListPools(ctx, r.API, r.Namespace)
	if err != nil {
		return err
	}
	chosen, err := selectObjects(ctx, r.API, pools, r.Namespace, names, verbRetry)
	if err != nil {
		return err
	}
	return r.annotateObjects(ctx, chosen, "", now)
}

// RetryFailed retries all BackendPools in state Failed or Retrying, and all Services and Gateways with a failed write of
// their load balancer.
func (r RetryCommand) RetryFailed(ctx context.Context, now time.Time) error {
	pools, err := ListPools(ctx, r.API, r.Namespace)
	if err != nil {
		return err
	}
	var failed selection
	for i := range pools {
		if state := PoolState(&pools[i]); state == v1alpha1.ReasonFailed || state == v1alpha1.ReasonRetrying {
			failed.pools = append(failed.pools, pools[i])
		}
	}
	var seen bool
	if failed.services, seen, err = listFailedServices(ctx, r.API, r.Namespace); err != nil {
		return err
	}
	unseen := ""
	if !seen {
		unseen = "You may not list Services: failed writes of their load balancers are not retried.\n"
	}
	if failed.gateways, seen, err = listFailedGateways(ctx, r.API, r.Namespace); err != nil {
		return err
	}
	if !seen {
		unseen += "You may not list Gateways and their routes: failed writes of their load balancers are not retried.\n"
	}
	return r.annotateObjects(ctx, failed, unseen, now)
}

func annotationPatch(annotation string, now time.Time) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, now.UTC().Format(time.RFC3339Nano)))
}

func (r RetryCommand) annotateObjects(ctx context.Context, chosen selection, note string, now time.Time) error {
	retried, failed := []RetriedObject{}, []error{}
	for i := range chosen.services {
		obj, err := retryService(ctx, r.API, &chosen.services[i], now)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		retried = append(retried, obj)
	}
	for i := range chosen.gateways {
		obj, err := retryGateway(ctx, r.API, &chosen.gateways[i], now)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		retried = append(retried, obj)
	}
	for i := range chosen.pools {
		p := &chosen.pools[i]
		obj := RetriedObject{Kind: "BackendPool", Namespace: p.Namespace, Name: p.Name, State: PoolState(p)}
		if at := p.Status.NextEligibleAt; at != nil && at.After(now) {
			obj.NotBefore = at
		}
		of := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		of.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("BackendPool"))
		if err := r.API.Patch(ctx, of, annotationPatch(v1alpha1.RetryNowAnnotation, now)); err != nil {
			failed = append(failed, fmt.Errorf("BackendPool %s/%s: %w", p.Namespace, p.Name, err))
			continue
		}
		retried = append(retried, obj)
	}
	return errors.Join(append(failed, r.printResults(retried, note))...)
}

func (r RetryCommand) printResults(retried []RetriedObject, note string) error {
	if r.JSON {
		return json.NewEncoder(r.Out).Encode(retried)
	}
	text := ""
	switch {
	case len(retried) > 0:
	case note != "":
		text = "No BackendPool has failed.\n"
	default:
		text = "No BackendPool has failed, and no write of a load balancer of a Service or Gateway.\n"
	}
	for _, p := range retried {
		when := "is retried now"
		switch {
		case p.Kind != "BackendPool": // Weir limits early retries after a rejection
			when += ", or within 5 minutes if an early retry has just failed"
		case p.State == v1alpha1.ReasonPaused:
			when = "is retried after the pause (weir resume)"
		case p.NotBefore != nil:
			when = "is retried at " + humanize.FormatTime(p.NotBefore.Time) + ", not before, because of Azure's Retry-After"
		}
		text += fmt.Sprintf("%s %s/%s %s; it was %s\n", strings.ToLower(p.Kind), p.Namespace, p.Name, when, p.State)
	}
	_, err := io.WriteString(r.Out, text+note)
	return err
}
