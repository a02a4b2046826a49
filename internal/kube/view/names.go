// SPDX-License-Identifier: Apache-2.0

package view

import "weir.dev/weir/internal/servicelb"

// What Weir writes on a Service.
const (
	// ServiceFinalizer keeps a Service until nothing of it is left in Azure.
	ServiceFinalizer = "weir.dev/azure-load-balancer"
	// PlaceAnnotation records on a Service the names of the load balancers that may hold parts
	// of it, the one where it belongs first.
	PlaceAnnotation = "weir.dev/load-balancer"
	// GroupsAnnotation records the further resource groups that may have a public IP which was
	// made for a Service; it is absent where there are none.
	GroupsAnnotation = "weir.dev/public-ip-resource-groups"
	// ClassAnnotation records on a Service the spec.loadBalancerClass under which Weir serves it;
	// it is empty for none.
	ClassAnnotation = "weir.dev/load-balancer-class"
	// LinkGroupsAnnotation records the resource groups that may have a Private Link Service of a
	// Service; it is absent where there are none.
	LinkGroupsAnnotation = "weir.dev/private-link-resource-groups"
	// ConditionPrivateLink is the type of the condition on a Service that asks for a Private Link
	// Service.
	ConditionPrivateLink = "weir.dev/PrivateLinkService"
	// ConditionContested is the type of the condition on a Service. It is there during a contest
	// alone.
	ConditionContested = "weir.dev/Contested"
	// ConditionAccepted and ConditionProgrammed say how far a Service is.
	ConditionAccepted   = servicelb.TypeAccepted
	ConditionProgrammed = servicelb.TypeProgrammed
	// NotCreatedAnnotation is on a Service of a file that no API server has seen: its UID and its
	// node ports are stand-ins.
	NotCreatedAnnotation = "weir.dev/not-created-yet"
)

// What people write on a Service.
const (
	// AllowRemovalAnnotation lets its own addresses be taken away, however many others would lose
	// theirs.
	AllowRemovalAnnotation = servicelb.AllowRemovalAnnotation
	// WriteAgainAnnotation has Weir write at once what somebody else has undone, whenever its
	// value becomes another one.
	WriteAgainAnnotation = "weir.dev/write-again"
	// DryRunAnnotation on a Service keeps all that it has in Azure as it is. What would change
	// is said instead.
	DryRunAnnotation = "weir.dev/dry-run"
)

// CleanupFinalizer is that of Kubernetes' service controller, which cloud providers run: it
// keeps a Service until nothing of its load balancer is left.
const CleanupFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// What Weir writes on a Node.
const (
	// PlaceLabel is on each node where there are several load balancers, and says on which of
	// them it is: the name of the configuration, fit for a label.
	PlaceLabel = "weir.dev/load-balancer"
	// PreemptionAnnotation records on a node by which announcement of its eviction it was judged
	// last.
	PreemptionAnnotation = "weir.dev/preemption"
)

// ManagedBy labels the BackendPools that Weir makes, for people: whoever may write a
// BackendPool may write it, so nothing is decided by it.
const ManagedBy = "app.kubernetes.io/managed-by"

// azureAnnotations is how all annotations begin that speak of Azure load balancers.
const azureAnnotations = "service.beta.kubernetes.io/"

// ownAnnotations are those of Weir that stay in the cache.
var ownAnnotations = []string{PlaceAnnotation, GroupsAnnotation, LinkGroupsAnnotation, ClassAnnotation, AllowRemovalAnnotation, DryRunAnnotation, WriteAgainAnnotation}
