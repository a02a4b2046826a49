// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types.
const (
	// ConditionSynced is True while the pool is in sync. Its reason is the state that kubectl shows.
	ConditionSynced = "Synced"
	// ConditionParked is True while Azure's Retry-After is in effect: Weir makes no request for the pool
	// before nextEligibleAt, even if none is due.
	ConditionParked = "Parked"
	// ConditionPaused is True during a pause.
	ConditionPaused = "Paused"
	// ConditionDryRun is True while the Service has the annotation weir.dev/dry-run. Its message describes
	// the pending changes.
	ConditionDryRun = "DryRun"
	// ConditionContested is set and True while another controller or user keeps removing Weir's members from
	// the pool or resetting their admin states.
	ConditionContested = "Contested"
)

// ReasonUndone is the reason of Contested: Weir's changes were reverted twice in a row.
const ReasonUndone = "Undone"

// Reasons of the Synced condition.
const (
	// ReasonLevel: the pool is in sync.
	ReasonInSync = "InSync"
	// ReasonPending: nothing has been read from Azure yet.
	ReasonPending = "Pending"
	// ReasonUpdating: a write is in progress, in Weir or in Azure.
	ReasonUpdating = "Updating"
	// ReasonPace: a change waits because the pool changes often and the subscription's write quota is low.
	ReasonPace = "Pace"
	// ReasonDeferred: a change waits because the namespace has used its share of Weir's writes.
	ReasonDeferred = "Deferred"
	// ReasonRetrying: the last attempt failed and will be retried.
	ReasonRetrying = "Retrying"
	// ReasonFailed: the last attempt failed; Weir does not retry until something changes.
	ReasonFailed = "Failed"
	// ReasonDryRun: the Service has the annotation weir.dev/dry-run, so nothing is changed.
	ReasonDryRun = "DryRun"
	// ReasonPaused: the pool is paused.
	ReasonPaused = "Paused"
	// ReasonLoadBalancerNotFound: the load balancer does not exist in Azure.
	ReasonLoadBalancerNotFound = "LoadBalancerNotFound"
	// ReasonPoolNotFound: the pool does not exist on the load balancer.
	ReasonPoolNotFound = "PoolNotFound"
	// ReasonNICPool: the pool contains network interfaces, but membership is Address.
	ReasonNICPool = "NICPool"
	// ReasonAddressPool: the pool contains addresses, but membership is NetworkInterface.
	ReasonAddressPool = "AddressPool"
	// ReasonOverlappingNodes: another cluster has written addresses of this cluster's nodes to the pool.
	ReasonOverlappingNodes = "OverlappingNodes"
	// ReasonDuplicate: an older BackendPool manages the same pool, or a Service managed by Weir needs it.
	ReasonDuplicate = "Duplicate"
	// ReasonNotAllowed: the namespace is not permitted to use pools of the load balancer.
	ReasonNotAllowed = "NotAllowed"
	// ReasonLeaving: the Service's load balancer is being removed. The pool is deleted with its rules, unless
	// it has foreign members.
	ReasonLeaving = "Leaving"
	// ReasonServiceNotFound: the Service does not exist, and the pool was never filled.
	ReasonServiceNotFound = "ServiceNotFound"
	// ReasonServiceUnfit: the Service has no node ports, and the pool was never filled.
	ReasonServiceUnfit = "ServiceUnfit"
	// ReasonInvalid: the spec does not name a valid Azure pool.
	ReasonInvalid = "Invalid"
)

// Further reasons of the Paused condition.
const (
	// ReasonNotPaused: spec.paused is not set.
	ReasonNotPaused = "NotPaused"
	// ReasonPauseEnded: spec.paused is set, but pause.until has passed.
	ReasonPauseEnded = "Ended"
)

// SyncedReasons lists all reasons of the Synced condition.
var SyncedReasons = []string{
	ReasonInSync, ReasonPending, ReasonUpdating, ReasonPace, ReasonDeferred, ReasonRetrying, ReasonFailed, ReasonPaused, ReasonDryRun,
	ReasonLoadBalancerNotFound, ReasonPoolNotFound, ReasonNICPool, ReasonAddressPool, ReasonOverlappingNodes, ReasonDuplicate, ReasonNotAllowed,
	ReasonLeaving, ReasonServiceNotFound, ReasonServiceUnfit, ReasonInvalid,
}

// Reasons of the Parked condition.
const (
	// ReasonRetryAfter: Azure's last response for this pool has a Retry-After.
	ReasonRetryAfter = "RetryAfter"
	// ReasonGateClosed: a response for another pool throttles the subscription or the load balancer.
	ReasonGateClosed = "GateClosed"
	// ReasonNothingWaits: a Retry-After is in effect, but no attempt is pending because the pool is paused or
	// its last change failed. Later changes respect it.
	ReasonNothingWaits = "NothingWaits"
	// ReasonNotParked: requests are allowed.
	ReasonNotParked = "NotParked"
)
