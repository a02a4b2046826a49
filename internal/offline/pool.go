// SPDX-License-Identifier: Apache-2.0

package offline

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
)

const maxServiceName = 63

// validateBackendPool returns what an API server would reject, by the schema in config/crd.
func validateBackendPool(p *v1alpha1.BackendPool) field.ErrorList {
	errs := validateMeta(p.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	errs = append(errs, validateEnum(spec.Child("ipFamily"), p.Spec.IPFamily, string(lb.IPv4), string(lb.IPv6))...)
	switch ref, nodes := p.Spec.ServiceRef, p.Spec.Nodes; {
	case (ref != nil) == (nodes != nil):
		errs = append(errs, field.Invalid(spec, "", "set exactly one of serviceRef and nodes"))
	case ref != nil && (ref.Name == "" || len(ref.Name) > maxServiceName):
		errs = append(errs, field.Invalid(spec.Child("serviceRef", "name"), ref.Name, "must have 1 to 63 characters"))
	case nodes != nil:
		errs = append(errs, metavalidation.ValidateLabelSelector(&nodes.Selector, metavalidation.LabelSelectorValidationOptions{}, spec.Child("nodes", "selector"))...)
	}
	on := p.Spec.LoadBalancer
	id := lb.LoadBalancerID{SubscriptionID: on.SubscriptionID, ResourceGroup: on.ResourceGroup, Name: on.Name}
	if id.SubscriptionID == "" {
		id.SubscriptionID = "s"
	}
	if id.ResourceGroup == "" {
		id.ResourceGroup = "rg"
	}
	if err := id.Validate(); err != nil {
		errs = append(errs, field.Invalid(spec.Child("loadBalancer"), on.Name, err.Error()))
	}
	if err := (lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Name: p.Spec.PoolName}).Validate(); err != nil {
		errs = append(errs, field.Invalid(spec.Child("poolName"), p.Spec.PoolName, err.Error()))
	}
	return errs
}

// validateNamespace returns what an API server would reject.
func validateNamespace(n *corev1.Namespace) field.ErrorList {
	return validateMeta(n.ObjectMeta, false, apivalidation.NameIsDNSLabel)
}
