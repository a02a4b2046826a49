// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// HelmStep renders a Helm chart, and applies its objects as a step of manifests does.
type HelmStep struct {
	// chart is a packed chart (.tgz), with its dependencies in it.
	// +required
	Chart KeySource `json:"chart"`

	// releaseName is what templates read as .Release.Name.
	// +required
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName"`

	// namespace is where objects go that name none; absent, where those of other steps go.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// valuesFrom have values as YAML. Of several the later one counts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ValuesFrom []KeySource `json:"valuesFrom,omitempty"`

	// values count before those of valuesFrom. They are no secret: who may read Provisions reads them.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`

	// prune deletes what an earlier attempt of this step has applied, and the chart does not have
	// any more.
	// +optional
	Prune bool `json:"prune,omitempty"`
}

// KeySource is a key of a ConfigMap or a Secret of the same namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="set exactly one of configMap and secret"
type KeySource struct {
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ConfigMap string `json:"configMap,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Secret string `json:"secret,omitempty"`
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}
