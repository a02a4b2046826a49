// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Finalizer keeps a BackendPool until its addresses are out of the pool.
const Finalizer = "weir.dev/backend-pool"

// BackendPoolStatus is what Weir knows of the pool.
type BackendPoolStatus struct {
	// conditions are Synced, Parked and Paused, and DryRun and Contested where there is
	// something to say.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// desired is how many members the cluster wants in the pool: addresses, or machines.
	// +optional
	Desired *int32 `json:"desired,omitempty"`

	// observed is how many of its members Azure showed last, foreign ones included.
	// +optional
	Observed *int32 `json:"observed,omitempty"`

	// foreign is how many of the observed members somebody else put there.
	// +optional
	Foreign *int32 `json:"foreign,omitempty"`

	// retriesUsed of the budget for the current change.
	// +optional
	RetriesUsed *int32 `json:"retriesUsed,omitempty"`

	// retryBudget is how many retries a change may use.
	// +optional
	RetryBudget *int32 `json:"retryBudget,omitempty"`

	// nextEligibleAt is the time before which Azure wants no call for the pool. It
	// stands until then, also while the pool is paused or its last change was given up.
	// +optional
	NextEligibleAt *metav1.Time `json:"nextEligibleAt,omitempty"`

	// lastOutcome is how the last attempt ended.
	// +optional
	LastOutcome *AttemptOutcome `json:"lastOutcome,omitempty"`

	// told is what people heard last: whichever process comes next says none of it again.
	// +optional
	Told *Told `json:"told,omitempty"`

	// lastWrite is when Azure last took a write.
	// +optional
	LastWrite *metav1.Time `json:"lastWrite,omitempty"`

	// poolID is the ARM id of the pool that writtenAddresses speaks of. It is set
	// when Weir first takes the pool.
	// +optional
	PoolID string `json:"poolID,omitempty"`

	// writtenAddresses are the addresses that Weir put into the pool. It is
	// extended before a write and trimmed after it; whatever else the pool holds
	// is foreign and is never touched. A machine of which Weir has made the network
	// interface a member is here by the address of its node.
	// +optional
	// +listType=set
	WrittenAddresses []string `json:"writtenAddresses,omitempty"`

	// writtenInstances are the instances of uniform scale sets among them: Azure does not tell
	// the addresses of these, so one whose node is deleted is recognized by its number.
	// +optional
	// +listType=map
	// +listMapKey=scaleSet
	WrittenInstances []WrittenInstances `json:"writtenInstances,omitempty"`

	// unusable are nodes that belong in the pool and whose machine cannot join it, the first 50 by
	// name. Each joins once its machine can; until then the pool is level without it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Unusable []UnusableNode `json:"unusable,omitempty"`

	// down are the addresses that Weir has set Down, so that they take no new flows. It
	// is extended before a write and trimmed after it, like writtenAddresses; what
	// somebody else set Down is not in it.
	// +optional
	// +listType=map
	// +listMapKey=address
	Down []DownAddress `json:"down,omitempty"`

	// downCount is how many addresses are in down; absent if none is.
	// +optional
	DownCount *int32 `json:"downCount,omitempty"`

	// members names which members keep the pool from being level, as it was read last; absent of a
	// pool that is level. Those that are Down are in down.
	// +optional
	Members *MembersNotLevel `json:"members,omitempty"`

	// madeFor is there if Weir itself made this BackendPool: the UID of the Service for
	// which it did, or "nodes" for a pool of all nodes. Nobody but Weir may write a status.
	// +optional
	MadeFor string `json:"madeFor,omitempty"`
}

// WrittenInstances are instances of a uniform scale set that Weir has made members.
type WrittenInstances struct {
	// scaleSet is the ARM id, in lower case.
	// +required
	ScaleSet string `json:"scaleSet"`
	// addresses are those of their nodes, by the numbers of the instances.
	// +required
	Addresses map[string]string `json:"addresses"`
}

// UnusableNode is a node whose machine cannot join a pool.
type UnusableNode struct {
	// +required
	Node string `json:"node"`
	// +required
	Address string `json:"address"`
	// reason is why its machine cannot join.
	// +required
	Reason string `json:"reason"`
}

// MadeForNodes is what madeFor says of a pool of all nodes.
const MadeForNodes = "nodes"

// MembersNotLevel are the members that keep a pool from being level.
type MembersNotLevel struct {
	// missing are wanted in the pool, and not there.
	// +optional
	Missing *SomeMembers `json:"missing,omitempty"`
	// surplus are in the pool, put there by Weir, and do not belong there any more.
	// +optional
	Surplus *SomeMembers `json:"surplus,omitempty"`
	// foreign are in the pool, and somebody else put them there: Weir leaves them.
	// +optional
	Foreign *SomeMembers `json:"foreign,omitempty"`
}

// SomeMembers are some members of a pool.
type SomeMembers struct {
	// count is how many there are.
	// +required
	Count int32 `json:"count"`
	// named are the first 50 of them, by address; of network interfaces of others no address is known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Named []Member `json:"named,omitempty"`
}

// Member is one of a pool.
type Member struct {
	// node is whose address it is, if it is that of a node of this cluster.
	// +optional
	Node string `json:"node,omitempty"`
	// +required
	Address string `json:"address"`
}

// DownAddress is an address that Weir has set Down.
type DownAddress struct {
	// +required
	Address string `json:"address"`
	// node is whose address it is.
	// +optional
	Node string `json:"node,omitempty"`
	// reason is why the node is to take no new flows.
	// +optional
	Reason string `json:"reason,omitempty"`
	// since is when it was set Down, or was about to be.
	// +required
	Since metav1.Time `json:"since"`
}

// AttemptOutcome is how an attempt ended.
type AttemptOutcome struct {
	// class is Written, Unchanged, Stale, Retriable, Terminal or Refused.
	// +required
	Class string `json:"class"`
	// code is Azure's error code, or Weir's own where Azure has none.
	// +optional
	Code string `json:"code,omitempty"`
	// since is when an attempt first ended in this way.
	// +required
	Since metav1.Time `json:"since"`
}

// Told is what people heard last of a BackendPool, by events.
type Told struct {
	// word is the reason of the last event about an attempt.
	// +optional
	Word string `json:"word,omitempty"`
	// service is the Service that was told so; absent if this BackendPool was.
	// +optional
	Service string `json:"service,omitempty"`
	// givenUpFor is the class and the code of the error that the last change was given up
	// for; absent if it was not.
	// +optional
	GivenUpFor string `json:"givenUpFor,omitempty"`
	// problem is the state that the last warning on this BackendPool spoke of; absent once
	// it is over.
	// +optional
	Problem string `json:"problem,omitempty"`
}
