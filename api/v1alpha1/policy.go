// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PartnerLabel on a Namespace makes it an organisation of a partner: its value is the name of a
// Partner.
const PartnerLabel = "weir.dev/partner"

// PolicyName is what the one ProvisioningPolicy of a namespace is called.
const PolicyName = "default"

// Partner says how provisioning is retried in all namespaces that have its name in the label
// weir.dev/partner, unless these say otherwise.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=weir
// +kubebuilder:printcolumn:name="Retries",type=integer,JSONPath=`.spec.policy.retries`
// +kubebuilder:printcolumn:name="Max interval",type=string,JSONPath=`.spec.policy.maxInterval`
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

// ProvisioningPolicy says how provisioning is retried in its namespace, where that differs from
// what the namespace's partner says. A namespace has one, called default.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="a namespace has one ProvisioningPolicy, and its name is default"
// +kubebuilder:resource:categories=weir
// +kubebuilder:printcolumn:name="Retries",type=integer,JSONPath=`.spec.policy.retries`
// +kubebuilder:printcolumn:name="Max interval",type=string,JSONPath=`.spec.policy.maxInterval`
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

// PolicySpec has a policy.
type PolicySpec struct {
	// +required
	Policy RetryPolicy `json:"policy"`
}

// Duration is a time span such as 30s, 1h30m or 72h.
//
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(ms|s|m|h)){1,4}$`
type Duration string

// RetryPolicy says how provisioning is retried. What it leaves out is inherited.
type RetryPolicy struct {
	// retries is how many attempts follow the first one. 5 where nobody says otherwise.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Retries *int32 `json:"retries,omitempty"`

	// initialInterval is the wait before the first retry. 30s where nobody says otherwise.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="want at least 1s"
	InitialInterval Duration `json:"initialInterval,omitempty"`

	// factor is how many times as long as the one before each wait is, as a decimal in quotes. "2"
	// where nobody says otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,2}(\.[0-9]{1,6})?$`
	Factor string `json:"factor,omitempty"`

	// maxInterval is the longest wait. 60m where nobody says otherwise.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="want at least 1s"
	MaxInterval Duration `json:"maxInterval,omitempty"`

	// horizon bounds all waits together: the attempt after the wait that reaches it is the last.
	// 0s is none, which is so where nobody says otherwise.
	// +optional
	Horizon Duration `json:"horizon,omitempty"`

	// attemptTimeout ends an attempt that takes longer. 30m where nobody says otherwise.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="want 1s to 24h"
	AttemptTimeout Duration `json:"attemptTimeout,omitempty"`
}
