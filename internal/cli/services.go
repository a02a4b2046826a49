// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

// failedReasons are the reasons of a Service with a failed load balancer write, which Weir retries.
var failedReasons = []string{servicelb.ConditionReasonFailed, servicelb.ConditionReasonRejected, servicelb.ConditionReasonDeferred}

// retryReasons are the reasons of a Service that a user can retry by name. A retry of all failed Services contests with
// no other client.
var retryReasons = append(slices.Clone(failedReasons), servicelb.ConditionReasonConflict)

// unmetReason returns why the load balancer of a Service is not as it wants it; empty if for none of these reasons.
func unmetReason(s *corev1.Service, reasons []string) string {
	c := meta.FindStatusCondition(s.Status.Conditions, servicelb.TypeProgrammed)
	if c == nil || c.Status != metav1.ConditionFalse || !slices.Contains(reasons, c.Reason) {
		return ""
	}
	return c.Reason
}

// listFailedServices returns the Services with a failed load balancer write; seen is false if the caller may not list
// Services.
func listFailedServices(ctx context.Context, api client.Reader, namespace string) (failed []corev1.Service, seen bool, err error) {
	var list corev1.ServiceList
	if err := api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		if apierrors.IsForbidden(err) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("listing Services: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Service) bool { return unmetReason(&s, failedReasons) == "" }), true, nil
}

// Commands on BackendPools, as in the errors that name the next one.
const (
	verbPause  = "pause"
	verbResume = "resume"
	verbRetry  = "retry"
)

// selection are the BackendPools, Services and Gateways that a user named.
type selection struct {
	pools    []v1alpha1.BackendPool
	services []corev1.Service    // with a failed or contested write
	gateways []gatewayv1.Gateway // with a failed or contested write
}

// selectObjects selects BackendPools by name or pool/NAME, and with service/NAME those of a Service. For a retry it also
// selects the Service itself, if its write failed or is contested, and gateway/NAME. If one is missing, it returns only an error.
func selectObjects(ctx context.Context, api client.Reader, pools []v1alpha1.BackendPool, namespace string, names []string, verb string) (selection, error) {
	var chosen selection
	var missing []error
	for _, name := range names {
		if gateway, ok := strings.CutPrefix(name, "gateway/"); ok && verb == verbRetry {
			gw, err := findFailedGateway(ctx, api, namespace, gateway)
			if err != nil {
				missing = append(missing, err)
				continue
			}
			chosen.gateways = append(chosen.gateways, *gw)
			continue
		}
		service, ofService := strings.CutPrefix(name, "service/")
		name = strings.TrimPrefix(strings.TrimPrefix(name, "backend"), "pool/") // messages have backendpool NAMESPACE/NAME
		before := len(chosen.pools)
		for _, p := range pools {
			if p.Name == name || ofService && p.Spec.ServiceRef != nil && p.Spec.ServiceRef.Name == service {
				chosen.pools = append(chosen.pools, p)
			}
		}
		found := len(chosen.pools) > before
		switch {
		case ofService:
			s, err := findService(ctx, api, namespace, service)
			switch {
			case verb == verbRetry && s != nil && unmetReason(s, retryReasons) != "":
				chosen.services = append(chosen.services, *s)
			case found: // a pool may be left of a Service, and the caller may lack the right to get it
			case err != nil:
				missing = append(missing, err)
			default:
				missing = append(missing, noOwnPool(ctx, api, s, verb))
			}
		case !found:
			missing = append(missing, fmt.Errorf("namespace %s has no BackendPool %q: kubectl get backendpools -n %[1]s; those of a Service are service/NAME", namespace, name))
		}
	}
	if len(missing) > 0 {
		return selection{}, errors.Join(missing...)
	}
	return chosen, nil
}

func findService(ctx context.Context, api client.Reader, namespace, name string) (*corev1.Service, error) {
	var s corev1.Service
	switch err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s); {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("no BackendPool of namespace %s is for Service %q, and you may not get the Service: it may use a pool that Services share", namespace, name)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Service %q in namespace %s: kubectl get services -n %[2]s lists them", name, namespace)
	case err != nil:
		return nil, err
	}
	return &s, nil
}

// noOwnPool names the pools that a Service shares, and the command for these.
func noOwnPool(ctx context.Context, api client.Reader, s *corev1.Service, verb string) error {
	text := fmt.Sprintf("Service %s/%s has no BackendPool of its own", s.Namespace, s.Name)
	places := servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation])
	if len(places) == 0 {
		return fmt.Errorf("%s, and no load balancer of Weir: weir explain service %s -n %s has the reason", text, s.Name, s.Namespace)
	}
	var list v1alpha1.BackendPoolList
	if err := api.List(ctx, &list); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("BackendPools: %w", err)
	}
	var next []string
	for _, p := range list.Items {
		if p.Status.MadeFor == v1alpha1.MadeForNodes && cache.ContainsFold(places, p.Spec.LoadBalancer.Name) {
			next = append(next, fmt.Sprintf("weir %s -n %s %s", verb, p.Namespace, p.Name))
		}
	}
	if len(next) == 0 {
		return fmt.Errorf("%s: it shares the pool of all nodes of load balancer %s with other Services, and you see no BackendPool of that", text, strings.Join(places, ", "))
	}
	return fmt.Errorf("%s: it shares the pool of all nodes with the other Services of its load balancer. For all of them: %s", text, strings.Join(next, "; "))
}

// retryService sets the annotation with which Weir sends the write of a Service again.
func retryService(ctx context.Context, api client.Client, s *corev1.Service, now time.Time) (RetriedObject, error) {
	obj := RetriedObject{Kind: "Service", Namespace: s.Namespace, Name: s.Name, State: unmetReason(s, retryReasons)}
	of := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	of.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	if err := api.Patch(ctx, of, annotationPatch(metadata.WriteAgainAnnotation, now)); err != nil {
		return obj, fmt.Errorf("retrying Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return obj, nil
}
