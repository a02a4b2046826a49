// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// resolvePolicy returns the effective policy, the source of each value, and why the policy is invalid.
func (r *Reconciler) resolvePolicy(ctx context.Context, p *v1alpha1.Provision) (policy.Policy, []policy.Value, error, error) {
	layers, missing, err := r.policyLayers(ctx, p)
	if err != nil {
		return policy.Policy{}, nil, nil, err
	}
	retryPolicy, values, policyErr := policy.ResolvePolicy(layers...)
	return retryPolicy, values, errors.Join(missing, policyErr), nil
}

// policyLayers returns the policy layers, lowest precedence first. A missing Partner makes the policy
// invalid, because its limits are unknown.
func (r *Reconciler) policyLayers(ctx context.Context, p *v1alpha1.Provision) (layers []policy.Layer, missing, failed error) {
	var namespace corev1.Namespace
	if err := r.Cached.Get(ctx, client.ObjectKey{Name: p.Namespace}, &namespace); err != nil { // the cache may not have it yet
		return nil, nil, fmt.Errorf("read Namespace of the Provision: %w", err)
	}
	if name := namespace.Labels[v1alpha1.PartnerLabel]; name != "" {
		var partner v1alpha1.Partner
		switch err := r.Cached.Get(ctx, client.ObjectKey{Name: name}, &partner); {
		case err == nil:
			layers = append(layers, policy.Layer{From: "Partner/" + name, Raw: policyWords(partner.Spec.Policy), Admin: true})
		case apierrors.IsNotFound(err):
			missing = fmt.Errorf("there is no Partner %q, which label %s of the Namespace names", name, v1alpha1.PartnerLabel)
		default:
			return nil, nil, err
		}
	}
	var own v1alpha1.ProvisioningPolicy
	switch err := r.Cached.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: v1alpha1.PolicyName}, &own); {
	case err == nil:
		layers = append(layers, policy.Layer{From: "ProvisioningPolicy", Raw: policyWords(own.Spec.Policy)})
	case !apierrors.IsNotFound(err):
		return nil, nil, err
	}
	if p.Spec.Policy != nil {
		layers = append(layers, policy.Layer{From: "Provision", Raw: policyWords(*p.Spec.Policy)})
	}
	return layers, missing, nil
}

func policyWords(p v1alpha1.RetryPolicy) policy.RawPolicy {
	return policy.RawPolicy{
		Retries: p.Retries, InitialInterval: string(p.InitialInterval), Factor: p.Factor, MaxInterval: string(p.MaxInterval),
		Horizon: string(p.Horizon), AttemptTimeout: string(p.AttemptTimeout),
	}
}
