// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// States of a Provision.
const (
	// ProvisionRunning: an attempt is in progress.
	ProvisionRunning = "Running"
	// ProvisionWaiting: the next attempt begins at nextAttemptAt.
	ProvisionWaiting = "Waiting"
	// ProvisionSucceeded: all steps are complete.
	ProvisionSucceeded = "Succeeded"
	// ProvisionFailed: no further attempt until a user requests one or the spec changes.
	ProvisionFailed = "Failed"
	// ProvisionCancelled: a user canceled further attempts.
	ProvisionCancelled = "Cancelled"
)

// Condition types of a Provision.
const (
	// ProvisionAccepted is False if the policy is invalid or the steps depend on each other in a cycle.
	ProvisionAccepted = "Accepted"
	// ProvisionProgressing is True while an attempt is in progress or pending.
	ProvisionProgressing = "Progressing"
	// ProvisionReady is True when all steps are complete.
	ProvisionReady = "Ready"
	// ProvisionConditionCancelled is True while further attempts are canceled.
	ProvisionConditionCancelled = "Cancelled"
	// ProvisionConditionFailed is True after the last attempt has failed.
	ProvisionConditionFailed = "Failed"
)

// ProvisionStatus is the observed state of a Provision. It and the policy determine the time of the next
// attempt.
type ProvisionStatus struct {
	// conditions are Accepted, Progressing, Ready, Cancelled and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// state is Running, Waiting, Succeeded, Failed or Cancelled.
	// +optional
	State string `json:"state,omitempty"`

	// attempts counts the attempts for the current spec.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// attemptNumber counts all attempts, including those for earlier specs.
	// +optional
	AttemptNumber int64 `json:"attemptNumber,omitempty"`

	// startedAt is the start of the current attempt.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// lastAttempt is the last finished attempt.
	// +optional
	LastAttempt *ProvisionAttempt `json:"lastAttempt,omitempty"`

	// waitingSince is the start of the current wait.
	// +optional
	WaitingSince *metav1.MicroTime `json:"waitingSince,omitempty"`
	// notBefore is the time until which the target's API server throttles requests (Retry-After).
	// +optional
	NotBefore *metav1.MicroTime `json:"notBefore,omitempty"`
	// asked is true if a user requested the next attempt, which then waits only for notBefore.
	// +optional
	Asked bool `json:"asked,omitempty"`
	// nextAttemptAt is the start of the next attempt.
	// +optional
	NextAttemptAt *metav1.Time `json:"nextAttemptAt,omitempty"`
	// waited is the sum of all waits so far.
	// +optional
	Waited string `json:"waited,omitempty"`

	// cancelled is true while further attempts are canceled.
	// +optional
	Cancelled bool `json:"cancelled,omitempty"`

	// job is a hash of the target and the steps.
	// +optional
	Job string `json:"job,omitempty"`
	// anew is true if the next attempt repeats completed steps.
	// +optional
	Anew bool `json:"anew,omitempty"`

	// target identifies the cluster of the recorded steps.
	// +optional
	Target string `json:"target,omitempty"`
	// steps is the progress of each step.
	// +optional
	// +listType=map
	// +listMapKey=name
	Steps []StepStatus `json:"steps,omitempty"`

	// policy is the effective policy and the source of each value.
	// +optional
	// +listType=map
	// +listMapKey=name
	Policy []PolicyValue `json:"policy,omitempty"`

	// lastHandledCancelAt is the last handled value of the cancel annotation.
	// +optional
	LastHandledCancelAt string `json:"lastHandledCancelAt,omitempty"`
	// lastHandledRetryNowAt is the last handled value of the retry-now annotation.
	// +optional
	LastHandledRetryNowAt string `json:"lastHandledRetryNowAt,omitempty"`
	// lastHandledResetAt is the last handled value of the reset annotation.
	// +optional
	LastHandledResetAt string `json:"lastHandledResetAt,omitempty"`
}

// ProvisionAttempt is a finished attempt.
type ProvisionAttempt struct {
	// number is the attemptNumber.
	// +required
	Number int64 `json:"number"`
	// startedAt is the start of the attempt.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`
	// endedAt is the end of the attempt.
	// +required
	EndedAt metav1.MicroTime `json:"endedAt"`
	// result is Succeeded, Failed or Invalid. Invalid is not retried.
	// +required
	Result string `json:"result"`
	// step is the failed step.
	// +optional
	Step string `json:"step,omitempty"`
	// message is the error of the failed step.
	// +optional
	Message string `json:"message,omitempty"`
}

// StepStatus is the progress of a step.
type StepStatus struct {
	// name of the step.
	// +required
	Name string `json:"name"`
	// input is a hash of the step's input.
	// +optional
	Input string `json:"input,omitempty"`
	// doneAt is when the step completed with this input.
	// +optional
	DoneAt *metav1.Time `json:"doneAt,omitempty"`
	// applied is the number of objects applied so far, if the step is not complete.
	// +optional
	Applied int32 `json:"applied,omitempty"`
	// asked identifies the request to the target. It is recorded before the request is sent.
	// +optional
	Asked string `json:"asked,omitempty"`
	// inventory lists objects that the step may have created, as group/kind/namespace/name. It is extended
	// before objects are applied and trimmed after objects are pruned.
	// +optional
	// +listType=set
	Inventory []string `json:"inventory,omitempty"`
}

// PolicyValue is a value of the effective policy.
type PolicyValue struct {
	// name of the field.
	// +required
	Name string `json:"name"`
	// value in effect.
	// +required
	Value string `json:"value"`
	// from is the source of the value: built-in, Partner/<name>, ProvisioningPolicy, Provision, or minimum if
	// a configured interval is below the minimum.
	// +required
	From string `json:"from"`
}
