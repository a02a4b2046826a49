// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provision"
)

// resolve returns the effective policy, the source of each value, and why the policy is invalid.
func (r *Room) resolve(ctx context.Context, p *v1alpha1.Provision) (provision.Policy, []provision.Value, error, error) {
	layers, missing, err := r.layers(ctx, p)
	if err != nil {
		return provision.Policy{}, nil, nil, err
	}
	policy, values, policyErr := provision.Resolve(layers...)
	return policy, values, errors.Join(missing, policyErr), nil
}

// layers returns the policy layers, lowest precedence first. A missing Partner makes the policy
// invalid, because its limits are unknown.
func (r *Room) layers(ctx context.Context, p *v1alpha1.Provision) (all []provision.Layer, missing, failed error) {
	var namespace corev1.Namespace
	if err := r.Cached.Get(ctx, client.ObjectKey{Name: p.Namespace}, &namespace); client.IgnoreNotFound(err) != nil {
		return nil, nil, err
	}
	if name := namespace.Labels[v1alpha1.PartnerLabel]; name != "" {
		var partner v1alpha1.Partner
		switch err := r.Cached.Get(ctx, client.ObjectKey{Name: name}, &partner); {
		case err == nil:
			all = append(all, provision.Layer{From: "Partner/" + name, Words: wordsOf(partner.Spec.Policy), Admin: true})
		case apierrors.IsNotFound(err):
			missing = fmt.Errorf("there is no Partner %q, which label %s of the Namespace names", name, v1alpha1.PartnerLabel)
		default:
			return nil, nil, err
		}
	}
	var own v1alpha1.ProvisioningPolicy
	switch err := r.Cached.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: v1alpha1.PolicyName}, &own); {
	case err == nil:
		all = append(all, provision.Layer{From: "ProvisioningPolicy", Words: wordsOf(own.Spec.Policy)})
	case !apierrors.IsNotFound(err):
		return nil, nil, err
	}
	if p.Spec.Policy != nil {
		all = append(all, provision.Layer{From: "Provision", Words: wordsOf(*p.Spec.Policy)})
	}
	return all, missing, nil
}

func wordsOf(p v1alpha1.RetryPolicy) provision.Words {
	return provision.Words{
		Retries: p.Retries, InitialInterval: string(p.InitialInterval), Factor: p.Factor, MaxInterval: string(p.MaxInterval),
		Horizon: string(p.Horizon), AttemptTimeout: string(p.AttemptTimeout),
	}
}
