// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Types of conditions.
const (
	// ConditionSynced is True while the pool is known to be level; its reason is
	// the state that people read first.
	ConditionSynced = "Synced"
	// ConditionParked is True while Azure asked for patience: no call is made for
	// the pool before the time in nextEligibleAt, whether or not one is due.
	ConditionParked = "Parked"
	// ConditionPaused is True while spec.paused is set, and the end of the pause has not come.
	ConditionPaused = "Paused"
	// ConditionDryRun is True while the Service has weir.dev/dry-run; its message says what
	// would change in Azure.
	ConditionDryRun = "DryRun"
	// ConditionContested is there, and True, while somebody else keeps taking addresses of
	// Weir's out of the pool, or setting their admin states back.
	ConditionContested = "Contested"
)

// ReasonUndone is that of the Contested condition: what Weir wrote was undone twice in a row.
const ReasonUndone = "Undone"

// Reasons of the Synced condition.
const (
	// ReasonLevel: the pool holds what the cluster wants.
	ReasonLevel = "Level"
	// ReasonPending: nothing has been read from Azure yet.
	ReasonPending = "Pending"
	// ReasonUpdating: a write has been recorded and is on its way, or Azure is still
	// at work on an earlier one.
	ReasonUpdating = "Updating"
	// ReasonPace: a change waits because the pool keeps changing, and little is left of what
	// Azure takes of the subscription's writes.
	ReasonPace = "Pace"
	// ReasonDeferred: a change waits because the namespace has used up its share of the writes that
	// Weir makes.
	ReasonDeferred = "Deferred"
	// ReasonRetrying: the last attempt failed and another follows.
	ReasonRetrying = "Retrying"
	// ReasonFailed: the last attempt failed and none follows until something changes.
	ReasonFailed = "Failed"
	// ReasonDryRun: the Service has weir.dev/dry-run, and all that it has stays as it is.
	ReasonDryRun = "DryRun"
	// ReasonPaused: spec.paused is set, and the end of the pause has not come.
	ReasonPaused = "Paused"
	// ReasonLoadBalancerNotFound: Azure has no such load balancer.
	ReasonLoadBalancerNotFound = "LoadBalancerNotFound"
	// ReasonPoolNotFound: the load balancer has no such pool.
	ReasonPoolNotFound = "PoolNotFound"
	// ReasonNICPool: the pool holds network interfaces, and its members are to be addresses.
	ReasonNICPool = "NICPool"
	// ReasonAddressPool: the pool holds addresses, and its members are to be network interfaces.
	ReasonAddressPool = "AddressPool"
	// ReasonDuplicate: an older BackendPool holds the same pool, or a Service that Weir serves
	// needs it.
	ReasonDuplicate = "Duplicate"
	// ReasonNotAllowed: the namespace may not bind pools of the load balancer.
	ReasonNotAllowed = "NotAllowed"
	// ReasonLeaving: the Service gives up the load balancer that Weir made for it, and the
	// pool goes with its rules, unless others have addresses there.
	ReasonLeaving = "Leaving"
	// ReasonServiceNotFound: the Service does not exist and never filled the pool.
	ReasonServiceNotFound = "ServiceNotFound"
	// ReasonServiceUnfit: the Service has no node ports and never filled the pool.
	ReasonServiceUnfit = "ServiceUnfit"
	// ReasonInvalid: the spec cannot name a pool in Azure.
	ReasonInvalid = "Invalid"
)

// Reasons of the Paused condition, beside ReasonPaused.
const (
	// ReasonNotPaused: spec.paused is not set.
	ReasonNotPaused = "NotPaused"
	// ReasonPauseEnded: spec.paused is set, and the time in spec.pause has come.
	ReasonPauseEnded = "Ended"
)

// SyncedReasons are all reasons of the Synced condition.
var SyncedReasons = []string{
	ReasonLevel, ReasonPending, ReasonUpdating, ReasonPace, ReasonDeferred, ReasonRetrying, ReasonFailed, ReasonPaused, ReasonDryRun,
	ReasonLoadBalancerNotFound, ReasonPoolNotFound, ReasonNICPool, ReasonAddressPool, ReasonDuplicate, ReasonNotAllowed,
	ReasonLeaving, ReasonServiceNotFound, ReasonServiceUnfit, ReasonInvalid,
}

// Reasons of the Parked condition.
const (
	// ReasonRetryAfter: Azure's last answer for this pool asked for patience.
	ReasonRetryAfter = "RetryAfter"
	// ReasonGateClosed: an answer for another pool says that Azure takes no requests
	// of this subscription, or none for this load balancer.
	ReasonGateClosed = "GateClosed"
	// ReasonNothingWaits: Azure asked for patience and no attempt is planned, because
	// the pool is paused or its last change was given up. What comes next keeps to it.
	ReasonNothingWaits = "NothingWaits"
	// ReasonNotParked: an attempt may be made at any time.
	ReasonNotParked = "NotParked"
)
