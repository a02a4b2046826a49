// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MigrationStep makes the Weir of the target migrate its load balancers, like weir migrate run. It uses the
// target's own azure.json and Azure credentials, which never leave the target.
type MigrationStep struct {
	// to is the target SKU of Basic load balancers.
	// +required
	// +kubebuilder:validation:Enum=Standard
	To string `json:"to"`

	// namespace of Weir in the target.
	// +optional
	// +kubebuilder:default=weir-system
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}
