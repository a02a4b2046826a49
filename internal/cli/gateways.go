// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/k8s/metadata"
)

// unmetGatewayReason is unmetReason for a Gateway: the message of its condition begins with the reason.
func unmetGatewayReason(gw *gatewayv1.Gateway, reasons []string) string {
	c := meta.FindStatusCondition(gw.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(gatewayv1.GatewayReasonPending) {
		return ""
	}
	if reason, _, _ := strings.Cut(c.Message, ": "); slices.Contains(reasons, reason) {
		return reason
	}
	return ""
}

// listFailedGateways returns the Gateways of Weir with a failed load balancer write; seen is false if the caller may not
// list Gateways and their routes.
func listFailedGateways(ctx context.Context, api client.Reader, namespace string) (failed []gatewayv1.Gateway, seen bool, err error) {
	found, err := status.ReadGateways(ctx, api, namespace)
	if err != nil {
		return nil, false, err
	}
	return slices.DeleteFunc(found.All, func(gw gatewayv1.Gateway) bool { return unmetGatewayReason(&gw, failedReasons) == "" }), !found.Unseen, nil
}

// findFailedGateway returns a Gateway with a failed or contested load balancer write, or why it is not retried.
func findFailedGateway(ctx context.Context, api client.Reader, namespace, name string) (*gatewayv1.Gateway, error) {
	var gw gatewayv1.Gateway
	if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &gw); err != nil {
		return nil, fmt.Errorf("reading Gateway %s/%s: %w", namespace, name, err)
	}
	if unmetGatewayReason(&gw, retryReasons) == "" {
		return nil, fmt.Errorf("no write of the load balancer of Gateway %s/%s has failed: weir explain gateway %[2]s -n %[1]s shows its state", namespace, name)
	}
	return &gw, nil
}

func retryGateway(ctx context.Context, api client.Client, gw *gatewayv1.Gateway, now time.Time) (RetriedObject, error) {
	obj := RetriedObject{Kind: "Gateway", Namespace: gw.Namespace, Name: gw.Name, State: unmetGatewayReason(gw, retryReasons)}
	of := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: gw.Namespace, Name: gw.Name}}
	of.SetGroupVersionKind(schema.FromAPIVersionAndKind(gatewayv1.GroupVersion.String(), "Gateway"))
	if err := api.Patch(ctx, of, annotationPatch(metadata.WriteAgainAnnotation, now)); err != nil {
		return obj, fmt.Errorf("retrying Gateway %s/%s: %w", gw.Namespace, gw.Name, err)
	}
	return obj, nil
}
