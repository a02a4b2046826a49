// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PartnerLabel assigns a Namespace to the Partner named by its value.
const PartnerLabel = "weir.dev/partner"

// PolicyName is the required name of a ProvisioningPolicy.
const PolicyName = "default"

// Partner sets the default retry policy of all namespaces with the label weir.dev/partner=<name>.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=weir
// +kubebuilder:printcolumn:name="Retries",type=integer,JSONPath=`.spec.policy.retries`
// +kubebuilder:printcolumn:name="Initial",type=string,JSONPath=`.spec.policy.initialInterval`
// +kubebuilder:printcolumn:name="Factor",type=string,JSONPath=`.spec.policy.factor`
// +kubebuilder:printcolumn:name="Max interval",type=string,JSONPath=`.spec.policy.maxInterval`
// +kubebuilder:printcolumn:name="Horizon",type=string,JSONPath=`.spec.policy.horizon`
// +kubebuilder:printcolumn:name="Timeout",type=string,JSONPath=`.spec.policy.attemptTimeout`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Partner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PolicySpec `json:"spec"`
}

// PartnerList is a list of Partners.
//
// +kubebuilder:object:root=true
type PartnerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Partner `json:"items"`
}

// ProvisioningPolicy overrides the retry policy of the Partner for one namespace. A namespace can have one,
// named default.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="a namespace has one ProvisioningPolicy, and its name is default"
// +kubebuilder:resource:categories=weir
// +kubebuilder:printcolumn:name="Retries",type=integer,JSONPath=`.spec.policy.retries`
// +kubebuilder:printcolumn:name="Initial",type=string,JSONPath=`.spec.policy.initialInterval`
// +kubebuilder:printcolumn:name="Factor",type=string,JSONPath=`.spec.policy.factor`
// +kubebuilder:printcolumn:name="Max interval",type=string,JSONPath=`.spec.policy.maxInterval`
// +kubebuilder:printcolumn:name="Horizon",type=string,JSONPath=`.spec.policy.horizon`
// +kubebuilder:printcolumn:name="Timeout",type=string,JSONPath=`.spec.policy.attemptTimeout`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProvisioningPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PolicySpec `json:"spec"`
}

// ProvisioningPolicyList is a list of ProvisioningPolicies.
//
// +kubebuilder:object:root=true
type ProvisioningPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProvisioningPolicy `json:"items"`
}

// PolicySpec contains a retry policy.
type PolicySpec struct {
	// +required
	Policy RetryPolicy `json:"policy"`
}

// Duration is a time span such as 30s, 1h30m or 72h.
//
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(ms|s|m|h)){1,4}$`
type Duration string

// RetryPolicy configures retries of Provisions. Unset fields are inherited: from the ProvisioningPolicy, then
// the Partner, then the built-in default.
type RetryPolicy struct {
	// retries is the maximum number of attempts after the first one. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Retries *int32 `json:"retries,omitempty"`

	// initialInterval is the wait before the first retry. Default: 30s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="want at least 1s"
	InitialInterval Duration `json:"initialInterval,omitempty"`

	// factor is the growth of each wait relative to the previous one, a decimal in quotes. Default: "2".
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,2}(\.[0-9]{1,6})?$`
	Factor string `json:"factor,omitempty"`

	// maxInterval is the longest wait. Default: 60m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="want at least 1s"
	MaxInterval Duration `json:"maxInterval,omitempty"`

	// horizon limits the sum of all waits: the attempt after the wait that reaches it is the last. 0s, the
	// default, means no limit.
	// +optional
	Horizon Duration `json:"horizon,omitempty"`

	// attemptTimeout is the timeout of one attempt. Default: 30m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="want 1s to 24h"
	AttemptTimeout Duration `json:"attemptTimeout,omitempty"`
}
