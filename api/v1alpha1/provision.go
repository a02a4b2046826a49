// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What people ask of a Provision: the value is the time at which they do, and one that differs
// from what status says was handled is asked anew.
const (
	// CancelAnnotation cancels the attempts to come. The one under way goes on.
	CancelAnnotation = "weir.dev/cancel-requested-at"
	// RetryNowAnnotation has the next attempt begin without waiting. A BackendPool hears it, too.
	RetryNowAnnotation = "weir.dev/retry-now-requested-at"
	// ResetAnnotation has all of it begin anew: the count of attempts, and the steps.
	ResetAnnotation = "weir.dev/reset-requested-at"
)

// Provision brings a cluster into a state, by attempts that are repeated over hours or days until
// one succeeds.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="the name has at most 200 characters"
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=weir
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
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

// ProvisionSpec says which cluster, what is done there, and how it is retried.
type ProvisionSpec struct {
	// +required
	Target ProvisionTarget `json:"target"`

	// steps are done one after the other, in this order as far as dependsOn does not ask for
	// another. One that is done is not repeated unless what goes into it has changed.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(s, !has(s.dependsOn) || s.dependsOn.all(d, self.exists(t, t.name == d)))",message="dependsOn names a step that is not there"
	Steps []ProvisionStep `json:"steps"`

	// policy is how this one is retried, where that differs from what the namespace and its
	// partner say.
	// +optional
	Policy *RetryPolicy `json:"policy,omitempty"`
}

// ProvisionTarget is the cluster that is provisioned.
//
// +kubebuilder:validation:XValidation:rule="has(self.kubeconfigSecret) != has(self.serviceAccountName)",message="set exactly one of kubeconfigSecret and serviceAccountName"
type ProvisionTarget struct {
	// kubeconfigSecret is a Secret of the same namespace with a kubeconfig for the cluster.
	// +optional
	KubeconfigSecret *KubeconfigSecret `json:"kubeconfigSecret,omitempty"`

	// serviceAccountName makes this cluster the target: what is done has the rights of that
	// ServiceAccount of the same namespace, and no others.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// KubeconfigSecret is a key of a Secret.
type KubeconfigSecret struct {
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// key has the kubeconfig, with all that it needs in itself: no files, no commands.
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// ProvisionStep is one thing that is done.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dependsOn) || !(self.name in self.dependsOn)",message="a step cannot depend on itself"
// +kubebuilder:validation:XValidation:rule="[has(self.manifests), has(self.helm), has(self.wait), has(self.job), has(self.migration)].filter(x, x).size() == 1",message="set exactly one of manifests, helm, wait, job and migration"
type ProvisionStep struct {
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// dependsOn are the steps that have to be done before this one; an empty list is none.
	// Absent, they are all steps that are listed before it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=31
	// +kubebuilder:validation:items:MaxLength=63
	DependsOn []string `json:"dependsOn,omitzero"`

	// manifests are applied, and all of their objects become ready.
	// +optional
	Manifests *ManifestsStep `json:"manifests,omitempty"`

	// helm renders a chart, whose objects are applied and become ready.
	// +optional
	Helm *HelmStep `json:"helm,omitempty"`

	// wait is done when an object has a condition.
	// +optional
	Wait *WaitStep `json:"wait,omitempty"`

	// job runs a container to its end.
	// +optional
	Job *JobStep `json:"job,omitempty"`

	// migration has the target's own Weir migrate its load balancers.
	// +optional
	Migration *MigrationStep `json:"migration,omitempty"`
}

// ManifestsStep applies objects.
type ManifestsStep struct {
	// sources have the objects as YAML, applied in this order, and within a source in the order
	// of its keys; Namespaces and CustomResourceDefinitions go first.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Sources []ManifestSource `json:"sources"`

	// prune deletes what an earlier attempt of this step has applied, and the sources do not have
	// any more.
	// +optional
	Prune bool `json:"prune,omitempty"`
}

// ManifestSource is a ConfigMap or a Secret of the same namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="set exactly one of configMap and secret"
type ManifestSource struct {
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ConfigMap string `json:"configMap,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Secret string `json:"secret,omitempty"`
}

// WaitStep names an object of the target.
type WaitStep struct {
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9.-]+/)?[a-z0-9]+$`
	APIVersion string `json:"apiVersion"`
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Kind string `json:"kind"`
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?$`
	Name string `json:"name"`
	// condition is the type of a condition that becomes True. Absent, the object becomes ready as
	// those of manifests do.
	// +optional
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([-a-z0-9.]+/)?[A-Za-z0-9][-_.A-Za-z0-9]*$`
	Condition string `json:"condition,omitempty"`
}
