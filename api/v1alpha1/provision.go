// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that request an action. The value is the time of the request; a value that differs from the
// last one handled, in status, is a new request.
const (
	// CancelAnnotation cancels further attempts. The current attempt continues.
	CancelAnnotation = "weir.dev/cancel-requested-at"
	// RetryNowAnnotation starts the next attempt without waiting. It also applies to BackendPools.
	RetryNowAnnotation = "weir.dev/retry-now-requested-at"
	// ResetAnnotation starts over: the count of attempts and all steps.
	ResetAnnotation = "weir.dev/reset-requested-at"
)

// Provision configures a cluster by a list of steps. Failed attempts are retried over hours or days until one
// succeeds.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="the name has at most 200 characters"
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=weir
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.attempts`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextAttemptAt`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.lastAttempt.step`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Provision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ProvisionSpec `json:"spec"`
	// +optional
	Status ProvisionStatus `json:"status,omitzero"`
}

// ProvisionList is a list of Provisions.
//
// +kubebuilder:object:root=true
type ProvisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provision `json:"items"`
}

// ProvisionSpec selects the target cluster, the steps and the retry policy.
type ProvisionSpec struct {
	// +required
	Target ProvisionTarget `json:"target"`

	// steps run one after another, in this order unless dependsOn requires another. A completed step is
	// repeated only if its input has changed.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(s, !has(s.dependsOn) || s.dependsOn.all(d, self.exists(t, t.name == d)))",message="dependsOn names a step that is not there"
	Steps []ProvisionStep `json:"steps"`

	// policy overrides the retry policy of the namespace and its partner.
	// +optional
	Policy *RetryPolicy `json:"policy,omitempty"`
}

// ProvisionTarget is the cluster to provision. Set exactly one field.
//
// +kubebuilder:validation:XValidation:rule="has(self.kubeconfigSecret) != has(self.serviceAccountName)",message="set exactly one of kubeconfigSecret and serviceAccountName"
type ProvisionTarget struct {
	// kubeconfigSecret is a Secret in the same namespace with a kubeconfig of the target.
	// +optional
	KubeconfigSecret *KubeconfigSecret `json:"kubeconfigSecret,omitempty"`

	// serviceAccountName selects this cluster as target. Steps run with the permissions of this
	// ServiceAccount in the same namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// KubeconfigSecret is a key of a Secret.
type KubeconfigSecret struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// key of the Secret. The kubeconfig must be self-contained: no file references, no exec plugins.
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// ProvisionStep is one step. Set exactly one of manifests, helm, wait, job and migration.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dependsOn) || !(self.name in self.dependsOn)",message="a step cannot depend on itself"
// +kubebuilder:validation:XValidation:rule="[has(self.manifests), has(self.helm), has(self.wait), has(self.job), has(self.migration)].filter(x, x).size() == 1",message="set exactly one of manifests, helm, wait, job and migration"
type ProvisionStep struct {
	// name of the step, unique in the Provision.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// dependsOn lists the steps that must complete before this one; an empty list means none. If unset, these
	// are all steps listed before this one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=31
	// +kubebuilder:validation:items:MaxLength=63
	DependsOn []string `json:"dependsOn,omitzero"`

	// manifests applies objects and waits until they are ready.
	// +optional
	Manifests *ManifestsStep `json:"manifests,omitempty"`

	// helm renders a chart, applies its objects and waits until they are ready.
	// +optional
	Helm *HelmStep `json:"helm,omitempty"`

	// wait waits for a condition of an object.
	// +optional
	Wait *WaitStep `json:"wait,omitempty"`

	// job runs a container to completion.
	// +optional
	Job *JobStep `json:"job,omitempty"`

	// migration makes the target's own Weir migrate its load balancers.
	// +optional
	Migration *MigrationStep `json:"migration,omitempty"`
}

// ManifestsStep applies objects.
type ManifestsStep struct {
	// sources contain the objects as YAML. They are applied in this order, and within a source in the order
	// of its keys; Namespaces and CustomResourceDefinitions are applied first.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Sources []ManifestSource `json:"sources"`

	// prune deletes objects that an earlier attempt of this step applied and that are no longer in the
	// sources.
	// +optional
	Prune bool `json:"prune,omitempty"`
}

// ManifestSource is a ConfigMap or Secret in the same namespace. Set exactly one.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="set exactly one of configMap and secret"
type ManifestSource struct {
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
}

// WaitStep waits for an object of the target.
type WaitStep struct {
	// apiVersion of the object.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9.-]+/)?[a-z0-9]+$`
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Kind string `json:"kind"`
	// namespace of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?$`
	Name string `json:"name"`
	// condition is a condition type that must become True. If unset, the object must become ready, by the
	// same rules as in manifests.
	// +optional
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([-a-z0-9.]+/)?[A-Za-z0-9][-_.A-Za-z0-9]*$`
	Condition string `json:"condition,omitempty"`
}
