// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackendPool has Weir keep one backend address pool of an Azure load balancer
// level with the cluster. Its status is the durable record of what Weir wrote, and
// where to look when a pool is not level.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.poolID) || (has(self.spec.membership) ? self.spec.membership : 'Auto') == (has(oldSelf.spec.membership) ? oldSelf.spec.membership : 'Auto')",message="spec.membership cannot change once the pool was taken: delete this BackendPool, which takes its members out of the pool, and create another for a pool of the other kind",fieldPath=".spec.membership"
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bp,categories=weir
// +kubebuilder:printcolumn:name="Load balancer",type=string,JSONPath=`.spec.loadBalancer.name`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.poolName`
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.serviceRef.name`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Observed",type=integer,JSONPath=`.status.observed`
// +kubebuilder:printcolumn:name="Down",type=integer,JSONPath=`.status.downCount`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Missing",type=integer,priority=1,JSONPath=`.status.members.missing.count`
// +kubebuilder:printcolumn:name="Surplus",type=integer,priority=1,JSONPath=`.status.members.surplus.count`
// +kubebuilder:printcolumn:name="Retries",type=integer,priority=1,JSONPath=`.status.retriesUsed`
// +kubebuilder:printcolumn:name="Paused until",type=string,priority=1,JSONPath=`.spec.pause.until`
// +kubebuilder:printcolumn:name="Parked until",type=string,priority=1,JSONPath=`.status.nextEligibleAt`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Synced")].message`
type BackendPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec BackendPoolSpec `json:"spec"`
	// +optional
	Status BackendPoolStatus `json:"status,omitzero"`
}

// BackendPoolList is a list of BackendPools.
//
// +kubebuilder:object:root=true
type BackendPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BackendPool `json:"items"`
}

// BackendPoolSpec says which pool, and where its members come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceRef) != has(self.nodes)",message="set exactly one of serviceRef and nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.pause) || has(self.paused) && self.paused",message="pause says until when and why a pool is paused, and this one is not: remove spec.pause together with spec.paused, as weir resume does"
// +kubebuilder:validation:XValidation:rule="self.loadBalancer == oldSelf.loadBalancer && self.poolName == oldSelf.poolName && self.ipFamily == oldSelf.ipFamily",message="loadBalancer, poolName and ipFamily cannot change: delete this BackendPool, which takes its addresses out of the pool, and create another"
type BackendPoolSpec struct {
	// serviceRef names a Service of the same namespace, of type LoadBalancer or
	// NodePort: the members are the nodes that host its endpoints.
	// +optional
	ServiceRef *ServiceReference `json:"serviceRef,omitempty"`

	// nodes makes all nodes that match members, whatever runs on them.
	// +optional
	Nodes *NodeMembers `json:"nodes,omitempty"`

	// loadBalancer is the Azure load balancer that has the pool.
	// +required
	LoadBalancer LoadBalancerReference `json:"loadBalancer"`

	// poolName is the name of the backend address pool. It has to exist.
	// +required
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$`
	PoolName string `json:"poolName"`

	// ipFamily is the family of the pool's addresses.
	// +optional
	// +kubebuilder:default=IPv4
	// +kubebuilder:validation:Enum=IPv4;IPv6
	IPFamily string `json:"ipFamily,omitempty"`

	// membership is how nodes become members. Address writes their addresses into the pool.
	// NetworkInterface writes the network interfaces of their machines, which then say that they
	// are in the pool; that is for load balancers of the cluster alone, as Azure takes an interface
	// into the pools of one public one and one internal one. Auto, which is what an absent one
	// means, is Address, but for BackendPools that Weir makes where
	// loadBalancerBackendPoolConfigurationType of azure.json is nodeIPConfiguration: it does not
	// depend on what the pool holds. Azure does not mix the two in one pool, and Weir leaves a pool
	// alone that holds the other kind. It cannot change once the pool was taken.
	// +optional
	// +kubebuilder:validation:Enum=Address;NetworkInterface;Auto
	Membership string `json:"membership,omitempty"`

	// paused leaves the pool in Azure as it is until it is unset, or until the time in pause.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pause is there for a pool that is paused alone: until when, and what people are told of it.
	// +optional
	Pause *Pause `json:"pause,omitempty"`
}

// PausedAt reports whether the pool is to be left as it is at a moment. Nobody else decides it, and
// nothing is written when a pause ends.
func (s *BackendPoolSpec) PausedAt(now time.Time) bool {
	return s.Paused && (s.Pause == nil || s.Pause.Until == nil || now.Before(s.Pause.Until.Time))
}

// PauseEnds is when a pause ends by itself; zero for one that has no end, or is over.
func (s *BackendPoolSpec) PauseEnds(now time.Time) time.Time {
	if !s.PausedAt(now) || s.Pause == nil || s.Pause.Until == nil {
		return time.Time{}
	}
	return s.Pause.Until.Time
}

// Pause says until when a pool is paused, and why.
type Pause struct {
	// until is when the pause ends by itself. From then on the pool is kept level again, though paused
	// is still set. Absent: it has no end.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// why is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Why string `json:"why,omitempty"`

	// by is who says to have paused it. It is for people, and proves nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
}

// ServiceReference names a Service of the same namespace.
type ServiceReference struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// NodeMembers selects nodes.
type NodeMembers struct {
	// selector selects nodes by their labels; an empty one selects all. Nodes that
	// are excluded from external load balancers never match.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}

// LoadBalancerReference names an Azure load balancer.
type LoadBalancerReference struct {
	// +required
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$`
	Name string `json:"name"`
	// resourceGroup is that of azure.json (loadBalancerResourceGroup, else
	// resourceGroup) when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=90
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_().-]*[0-9A-Za-z_()-]$`
	ResourceGroup string `json:"resourceGroup,omitempty"`
	// subscriptionID is that of azure.json when absent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z-]+$`
	SubscriptionID string `json:"subscriptionID,omitempty"`
}

// How nodes become members of a pool.
const (
	MembershipAddress          = "Address"
	MembershipNetworkInterface = "NetworkInterface"
	MembershipAuto             = "Auto"
)

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
	ReasonLevel, ReasonPending, ReasonUpdating, ReasonPace, ReasonRetrying, ReasonFailed, ReasonPaused, ReasonDryRun,
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
