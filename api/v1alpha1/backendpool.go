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
