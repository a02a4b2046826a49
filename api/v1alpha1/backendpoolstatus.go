// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Finalizer delays the deletion of a BackendPool until its members are removed from the pool.
const Finalizer = "weir.dev/backend-pool"

// BackendPoolStatus is the observed state of the pool.
type BackendPoolStatus struct {
	// conditions are Synced, Parked and Paused, and, if they apply, DryRun and Contested.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// desired is the number of members that the cluster wants in the pool.
	// +optional
	Desired *int32 `json:"desired,omitempty"`

	// observed is the number of members at the last read from Azure, including foreign ones.
	// +optional
	Observed *int32 `json:"observed,omitempty"`

	// foreign is the number of observed members that Weir did not add.
	// +optional
	Foreign *int32 `json:"foreign,omitempty"`

	// retriesUsed is the number of retries used for the current change.
	// +optional
	RetriesUsed *int32 `json:"retriesUsed,omitempty"`

	// retryBudget is the maximum number of retries per change.
	// +optional
	RetryBudget *int32 `json:"retryBudget,omitempty"`

	// nextEligibleAt is the time until which Azure throttles requests for the pool (Retry-After). It also
	// applies while the pool is paused or its last change has failed.
	// +optional
	NextEligibleAt *metav1.Time `json:"nextEligibleAt,omitempty"`

	// lastOutcome is the result of the last attempt.
	// +optional
	LastOutcome *AttemptOutcome `json:"lastOutcome,omitempty"`

	// lastEvent records the last events, so that a new leader does not repeat them.
	// +optional
	LastEvent *LastEvent `json:"lastEvent,omitempty"`

	// lastWrite is the time of the last successful write.
	// +optional
	LastWrite *metav1.Time `json:"lastWrite,omitempty"`

	// poolID is the ARM ID of the pool in writtenAddresses. It is set when Weir first manages the pool.
	// +optional
	PoolID string `json:"poolID,omitempty"`

	// writtenAddresses are the members that Weir added to the pool; all other members are foreign and never
	// changed. The list is extended before a write and trimmed afterwards. Network interfaces are listed by
	// the address of their node.
	// +optional
	// +listType=set
	WrittenAddresses []string `json:"writtenAddresses,omitempty"`

	// writtenInstances are the members that are instances of uniform scale sets. Azure does not return their
	// addresses, so Weir identifies them by instance number after their node is deleted.
	// +optional
	// +listType=map
	// +listMapKey=scaleSet
	WrittenInstances []WrittenInstances `json:"writtenInstances,omitempty"`

	// unusable are nodes whose machines cannot join the pool, the first 50 by name. The pool is in sync
	// without them; each joins when its machine can.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Unusable []UnusableNode `json:"unusable,omitempty"`

	// down are the members that Weir set to admin state Down, so that they receive no new flows. Members set
	// Down by others are not listed. The list is extended before a write and trimmed afterwards.
	// +optional
	// +listType=map
	// +listMapKey=address
	Down []DownAddress `json:"down,omitempty"`

	// downCount is the number of addresses in down; unset if there are none.
	// +optional
	DownCount *int32 `json:"downCount,omitempty"`

	// members are the members that are out of sync, as of the last read; unset if the pool is in sync.
	// Members that are Down are in down.
	// +optional
	Members *OutOfSyncMembers `json:"members,omitempty"`

	// madeFor is set if Weir created this BackendPool: the UID of its Service, or "nodes" for a pool of all
	// nodes. Only Weir may write the status.
	// +optional
	MadeFor string `json:"madeFor,omitempty"`
}

// WrittenInstances are members that are instances of one uniform scale set.
type WrittenInstances struct {
	// scaleSet is the ARM ID, in lower case.
	// +required
	ScaleSet string `json:"scaleSet"`
	// addresses maps instance numbers to the addresses of their nodes.
	// +required
	Addresses map[string]string `json:"addresses"`
}

// UnusableNode is a node whose machine cannot join a pool.
type UnusableNode struct {
	// node is the name of the node.
	// +required
	Node string `json:"node"`
	// address is the IP address of the node.
	// +required
	Address string `json:"address"`
	// reason is why the machine cannot join.
	// +required
	Reason string `json:"reason"`
}

// MadeForNodes is the value of madeFor for a pool of all nodes.
const MadeForNodes = "nodes"

// OutOfSyncMembers are the members that are out of sync.
type OutOfSyncMembers struct {
	// missing are desired, but not in the pool.
	// +optional
	Missing *MemberSample `json:"missing,omitempty"`
	// surplus were added by Weir and are no longer desired.
	// +optional
	Surplus *MemberSample `json:"surplus,omitempty"`
	// foreign were not added by Weir, which never removes them.
	// +optional
	Foreign *MemberSample `json:"foreign,omitempty"`
}

// MemberSample counts members and names the first of them.
type MemberSample struct {
	// count is the number of members.
	// +required
	Count int32 `json:"count"`
	// named are the first 50 members by address. Foreign network interfaces have no known address and are not
	// listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Named []Member `json:"named,omitempty"`
}

// Member is a member of a pool.
type Member struct {
	// node is the node with this address, if it belongs to this cluster.
	// +optional
	Node string `json:"node,omitempty"`
	// address is the IP address of the member.
	// +required
	Address string `json:"address"`
}

// DownAddress is a member that Weir set Down.
type DownAddress struct {
	// address is the IP address of the member.
	// +required
	Address string `json:"address"`
	// node is the node with this address.
	// +optional
	Node string `json:"node,omitempty"`
	// reason is why the node must receive no new flows.
	// +optional
	Reason string `json:"reason,omitempty"`
	// since is the time of the write, or of the intention to write.
	// +required
	Since metav1.Time `json:"since"`
}

// AttemptOutcome is the result of an attempt.
type AttemptOutcome struct {
	// class is Written, Unchanged, Stale, Retriable, Terminal or Refused.
	// +required
	Class string `json:"class"`
	// code is Azure's error code, or Weir's own if Azure returned none.
	// +optional
	Code string `json:"code,omitempty"`
	// since is the time of the first attempt with this result.
	// +required
	Since metav1.Time `json:"since"`
}

// LastEvent records the last events of a BackendPool.
type LastEvent struct {
	// reason is that of the last event about an attempt.
	// +optional
	Reason string `json:"reason,omitempty"`
	// service is the Service that received the event; unset if the BackendPool did.
	// +optional
	Service string `json:"service,omitempty"`
	// givenUpFor is the class and code of the error after which the last change was abandoned; unset
	// otherwise.
	// +optional
	GivenUpFor string `json:"givenUpFor,omitempty"`
	// problem is the state in the last warning event for this BackendPool; unset once it is resolved.
	// +optional
	Problem string `json:"problem,omitempty"`
}
