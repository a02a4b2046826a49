// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackendPool keeps one backend address pool of an Azure load balancer in sync with the cluster. Its status
// records what Weir wrote to the pool, and shows why the pool is out of sync.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.poolID) || (has(self.spec.membership) ? self.spec.membership : 'Auto') == (has(oldSelf.spec.membership) ? oldSelf.spec.membership : 'Auto')",message="spec.membership cannot change once the pool was taken: delete this BackendPool, which takes its members out of the pool, and create another for a pool of the other kind",fieldPath=".spec.membership"
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bp,categories=weir
// +kubebuilder:printcolumn:name="Load balancer",type=string,JSONPath=`.spec.loadBalancer.name`
// +kubebuilder:printcolumn:name="Pool",type=string,priority=1,JSONPath=`.spec.poolName`
// +kubebuilder:printcolumn:name="Service",type=string,priority=1,JSONPath=`.spec.serviceRef.name`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Observed",type=integer,JSONPath=`.status.observed`
// +kubebuilder:printcolumn:name="Foreign",type=integer,JSONPath=`.status.foreign`
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

// BackendPoolSpec selects the Azure pool and its members. Set exactly one of serviceRef and nodes.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceRef) != has(self.nodes)",message="set exactly one of serviceRef and nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.pause) || has(self.paused) && self.paused",message="pause says until when and why a pool is paused, and this one is not: remove spec.pause together with spec.paused, as weir resume does"
// +kubebuilder:validation:XValidation:rule="self.loadBalancer == oldSelf.loadBalancer && self.poolName == oldSelf.poolName && self.ipFamily == oldSelf.ipFamily",message="loadBalancer, poolName and ipFamily cannot change: delete this BackendPool, which takes its addresses out of the pool, and create another"
type BackendPoolSpec struct {
	// serviceRef names a Service in the same namespace, of type LoadBalancer or NodePort. The members are the
	// nodes that host its endpoints.
	// +optional
	ServiceRef *ServiceReference `json:"serviceRef,omitempty"`

	// nodes selects nodes as members, regardless of their pods.
	// +optional
	Nodes *NodeMembers `json:"nodes,omitempty"`

	// loadBalancer is the Azure load balancer of the pool.
	// +required
	LoadBalancer LoadBalancerReference `json:"loadBalancer"`

	// poolName is the name of an existing backend address pool.
	// +required
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$`
	PoolName string `json:"poolName"`

	// ipFamily is the IP family of the members.
	// +optional
	// +kubebuilder:default=IPv4
	// +kubebuilder:validation:Enum=IPv4;IPv6
	IPFamily string `json:"ipFamily,omitempty"`

	// membership is how nodes become members. Address adds the IP addresses of nodes to the pool.
	// NetworkInterface adds the pool to the network interfaces of the nodes' machines. Use NetworkInterface
	// only for load balancers of this cluster: Azure allows a network interface in pools of one public and
	// one internal load balancer. Auto, the default, means Address, except for BackendPools that Weir creates
	// if loadBalancerBackendPoolConfigurationType in azure.json is nodeIPConfiguration. Azure does not allow
	// both kinds of members in one pool; Weir does not change a pool with members of the other kind.
	// Immutable once status.poolID is set.
	// +optional
	// +kubebuilder:validation:Enum=Address;NetworkInterface;Auto
	Membership string `json:"membership,omitempty"`

	// paused stops all changes to the pool in Azure, until it is unset or until pause.until.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// pause describes the pause. It requires paused.
	// +optional
	Pause *Pause `json:"pause,omitempty"`
}

// IsPausedAt reports whether the pool is paused at a time. A pause ends by itself; nothing is written then.
func (s *BackendPoolSpec) IsPausedAt(now time.Time) bool {
	return s.Paused && (s.Pause == nil || s.Pause.Until == nil || now.Before(s.Pause.Until.Time))
}

// PauseEndTime returns the end of the current pause, or zero if it has none.
func (s *BackendPoolSpec) PauseEndTime(now time.Time) time.Time {
	if !s.IsPausedAt(now) || s.Pause == nil || s.Pause.Until == nil {
		return time.Time{}
	}
	return s.Pause.Until.Time
}

// Pause describes why and until when a pool is paused.
type Pause struct {
	// until is the end of the pause: Weir then syncs the pool again, even though paused is still set. If
	// unset, the pause has no end.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// why is a reason for users.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Why string `json:"why,omitempty"`

	// by is the user who paused the pool, for information only. It is not verified.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
}

// ServiceReference names a Service in the same namespace.
type ServiceReference struct {
	// name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// NodeMembers selects nodes.
type NodeMembers struct {
	// selector matches node labels; an empty selector matches all nodes. Nodes that are excluded from
	// external load balancers never match.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}

// LoadBalancerReference names an Azure load balancer.
type LoadBalancerReference struct {
	// name of the load balancer in Azure.
	// +required
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([0-9A-Za-z_.-]*[0-9A-Za-z_])?$`
	Name string `json:"name"`
	// resourceGroup defaults to loadBalancerResourceGroup in azure.json, or else resourceGroup.
	// +optional
	// +kubebuilder:validation:MaxLength=90
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_().-]*[0-9A-Za-z_()-]$`
	ResourceGroup string `json:"resourceGroup,omitempty"`
	// subscriptionID defaults to the one in azure.json.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z-]+$`
	SubscriptionID string `json:"subscriptionID,omitempty"`
}

// Values of spec.membership.
const (
	MembershipAddress          = "Address"
	MembershipNetworkInterface = "NetworkInterface"
	MembershipAuto             = "Auto"
)
