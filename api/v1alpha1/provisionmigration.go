// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MigrationStep has the Weir of the target migrate the load balancers of its cluster, as weir migrate run does: with the
// target's own azure.json and credentials of Azure, of which nothing comes here.
type MigrationStep struct {
	// to is the SKU that Basic load balancers are to have.
	// +required
	// +kubebuilder:validation:Enum=Standard
	To string `json:"to"`

	// namespace is where the target's Weir keeps its record.
	// +optional
	// +kubebuilder:default=weir-system
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}
