// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// JobStep runs one container to completion as a Job in the target.
type JobStep struct {
	// namespace of the Job. If unset, it is the namespace of objects that specify none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// image is the container image.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image"`

	// command replaces the image's entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	Command []string `json:"command,omitempty"`
	// args replaces the image's arguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	Args []string `json:"args,omitempty"`

	// env is the environment of the container.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []JobEnv `json:"env,omitempty"`

	// +optional
	Resources *JobResources `json:"resources,omitempty"`

	// volumes are PersistentVolumeClaims in the Job's namespace. Their content persists between attempts.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=8
	Volumes []JobVolume `json:"volumes,omitempty"`

	// serviceAccountName is a ServiceAccount in the Job's namespace. If unset, the container gets no token.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// runAsUser is the user ID of the container and the group ID of its volumes. If set, the pod meets the
	// "restricted" Pod Security Standard. If unset, the image's user is used.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// terminalExitCodes are exit codes after which the Provision is not retried.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	TerminalExitCodes []int32 `json:"terminalExitCodes,omitempty"`
}

// JobEnv is an environment variable. Set value or secretKeyRef.
//
// +kubebuilder:validation:XValidation:rule="!has(self.value) || !has(self.secretKeyRef)",message="set value or secretKeyRef"
type JobEnv struct {
	// name of the variable.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z][-._a-zA-Z0-9]*$`
	Name string `json:"name"`
	// value must not be secret: all users who can read Provisions can read it.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Value string `json:"value,omitempty"`
	// secretKeyRef is a key of a Secret in the Job's namespace.
	// +optional
	SecretKeyRef *SecretKey `json:"secretKeyRef,omitempty"`
}

// SecretKey is a key of a Secret.
type SecretKey struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// key in the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// JobResources are the resource requests and limits of the container.
type JobResources struct {
	// requests by resource name, such as cpu.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Requests map[string]resource.Quantity `json:"requests,omitempty"`
	// limits by resource name, such as memory.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Limits map[string]resource.Quantity `json:"limits,omitempty"`
}

// JobVolume is a PersistentVolumeClaim in the Job's namespace.
type JobVolume struct {
	// claimName is the name of the PersistentVolumeClaim.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClaimName string `json:"claimName"`
	// mountPath is the absolute path in the container.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[^:]*$`
	MountPath string `json:"mountPath"`
}
