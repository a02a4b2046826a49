// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// HelmStep renders a Helm chart and applies its objects like a manifests step.
type HelmStep struct {
	// chart is a packaged chart (.tgz) that includes its dependencies.
	// +required
	Chart KeySource `json:"chart"`

	// releaseName is the value of .Release.Name in templates.
	// +required
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName"`

	// namespace is the namespace of objects that specify none. If unset, it is the same as for other steps.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// valuesFrom contain values as YAML. Later entries override earlier ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ValuesFrom []KeySource `json:"valuesFrom,omitempty"`

	// values are overridden by valuesFrom. Do not use them for secrets: all users who can read Provisions can
	// read them.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`

	// prune deletes objects that an earlier attempt of this step applied and that are no longer in the chart.
	// +optional
	Prune bool `json:"prune,omitempty"`
}

// KeySource is a key of a ConfigMap or Secret in the same namespace. Set exactly one of configMap and secret.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="set exactly one of configMap and secret"
type KeySource struct {
	// configMap is the name of a ConfigMap.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ConfigMap string `json:"configMap,omitempty"`
	// secret is the name of a Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Secret string `json:"secret,omitempty"`
	// key is the key in the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}
