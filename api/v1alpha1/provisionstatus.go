// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// States of a Provision.
const (
	// ProvisionRunning: an attempt is under way.
	ProvisionRunning = "Running"
	// ProvisionWaiting: the next attempt follows at nextAttemptAt.
	ProvisionWaiting = "Waiting"
	// ProvisionSucceeded: all steps are done.
	ProvisionSucceeded = "Succeeded"
	// ProvisionFailed: no attempt follows until somebody asks, or the spec changes.
	ProvisionFailed = "Failed"
	// ProvisionCancelled: somebody cancelled the attempts to come.
	ProvisionCancelled = "Cancelled"
)

// Conditions of a Provision.
const (
	// ProvisionAccepted is False while the policy cannot be read, or steps wait for each other.
	ProvisionAccepted = "Accepted"
	// ProvisionProgressing is True while an attempt is under way or to come.
	ProvisionProgressing = "Progressing"
	// ProvisionReady is True once all steps are done.
	ProvisionReady = "Ready"
	// ProvisionConditionCancelled is True while attempts to come are cancelled.
	ProvisionConditionCancelled = "Cancelled"
	// ProvisionConditionFailed is True once the last attempt has failed.
	ProvisionConditionFailed = "Failed"
)

// ProvisionStatus is what has become of a Provision. When the next attempt is made follows from it
// and from the policy alone.
type ProvisionStatus struct {
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// state is Running, Waiting, Succeeded, Failed or Cancelled.
	// +optional
	State string `json:"state,omitempty"`

	// attempts is how many were begun for what is wanted now; attemptNumber counts all that ever
	// were.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// +optional
	AttemptNumber int64 `json:"attemptNumber,omitempty"`

	// startedAt is when the attempt under way began.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// lastAttempt is the last one that has ended.
	// +optional
	LastAttempt *ProvisionAttempt `json:"lastAttempt,omitempty"`

	// waitingSince is when the present wait began.
	// +optional
	WaitingSince *metav1.MicroTime `json:"waitingSince,omitempty"`
	// notBefore is the time that the target's API server named: nobody asks it before.
	// +optional
	NotBefore *metav1.MicroTime `json:"notBefore,omitempty"`
	// asked is true if somebody asked for the next attempt: it waits for notBefore alone.
	// +optional
	Asked bool `json:"asked,omitempty"`
	// nextAttemptAt is when the next attempt begins.
	// +optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// waited is how long all waits together were so far.
	// +optional
	Waited string `json:"waited,omitempty"`

	// cancelled is true while attempts to come are cancelled.
	// +optional
	Cancelled bool `json:"cancelled,omitempty"`

	// job is a digest of what is wanted: the target and the steps.
	// +optional
	Job string `json:"job,omitempty"`
	// anew is true if the next attempt repeats steps that are done.
	// +optional
	Anew bool `json:"anew,omitempty"`

	// target is the cluster that the steps speak of.
	// +optional
	Target string `json:"target,omitempty"`
	// steps are what was done so far.
	// +optional
	// +listType=map
	// +listMapKey=name
	Steps []StepStatus `json:"steps,omitempty"`

	// policy is what counts for this Provision, and whose word each value is.
	// +optional
	// +listType=map
	// +listMapKey=name
	Policy []PolicyValue `json:"policy,omitempty"`

	// +optional
	LastHandledCancelAt string `json:"lastHandledCancelAt,omitempty"`
	// +optional
	LastHandledRetryNowAt string `json:"lastHandledRetryNowAt,omitempty"`
	// +optional
	LastHandledResetAt string `json:"lastHandledResetAt,omitempty"`
}

// ProvisionAttempt is an attempt that has ended.
type ProvisionAttempt struct {
	// +required
	Number int64 `json:"number"`
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`
	// +required
	EndedAt metav1.MicroTime `json:"endedAt"`
	// result is Succeeded, Failed or Invalid, which no other attempt can mend.
	// +required
	Result string `json:"result"`
	// step is the one that failed.
	// +optional
	Step string `json:"step,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
}

// StepStatus is how far a step has come.
type StepStatus struct {
	// +required
	Name string `json:"name"`
	// input is a digest of what went into it.
	// +optional
	Input string `json:"input,omitempty"`
	// doneAt is when it was done with that.
	// +optional
	DoneAt *metav1.Time `json:"doneAt,omitempty"`
	// applied is how many of its objects were applied, where it is not done.
	// +optional
	Applied int32 `json:"applied,omitempty"`
	// asked is the wish by which the target was asked for something, kept before it is.
	// +optional
	Asked string `json:"asked,omitempty"`
	// inventory are the objects that it may have made, as group/kind/namespace/name. It is
	// extended before they are applied and trimmed after others are pruned.
	// +optional
	// +listType=set
	Inventory []string `json:"inventory,omitempty"`
}

// PolicyValue is a value of the policy in effect.
type PolicyValue struct {
	// +required
	Name string `json:"name"`
	// +required
	Value string `json:"value"`
	// from is where it is set: built-in, Partner/<name>, ProvisioningPolicy, Provision, or minimum for an interval that is set shorter than the minimum.
	// +required
	From string `json:"from"`
}
