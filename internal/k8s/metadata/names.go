// SPDX-License-Identifier: Apache-2.0

package metadata

// Metadata that Weir writes on Services.
const (
	// ServiceFinalizer keeps a Service until its Azure resources are deleted.
	ServiceFinalizer = "weir.dev/azure-load-balancer"
	// PlaceAnnotation records the load balancers that may have parts of the Service, the assigned one first.
	PlaceAnnotation = "weir.dev/load-balancer"
	// GroupsAnnotation records additional resource groups that may have a public IP created for the Service.
	GroupsAnnotation = "weir.dev/public-ip-resource-groups"
	// ClassAnnotation records the spec.loadBalancerClass under which Weir serves the Service; empty for none.
	ClassAnnotation = "weir.dev/load-balancer-class"
	// LinkGroupsAnnotation records the resource groups that may have a Private Link Service of the Service.
	LinkGroupsAnnotation = "weir.dev/private-link-resource-groups"
	// ConditionPrivateLink is the condition type for a Private Link Service.
	ConditionPrivateLink = "weir.dev/PrivateLinkService"
	// ConditionConflict is the condition type present during a conflict.
	ConditionConflict = "weir.dev/Contested"
	// NotCreatedAnnotation marks a Service from a file: UID and node ports are placeholders.
	NotCreatedAnnotation = "weir.dev/not-created-yet"
)

// Annotations that users write on Services.
const (
	// WriteAgainAnnotation makes Weir immediately rewrite undone changes whenever the value changes.
	WriteAgainAnnotation = "weir.dev/write-again"
	// DryRunAnnotation keeps the Service's Azure resources unchanged and reports the planned changes.
	DryRunAnnotation = "weir.dev/dry-run"
)

// CleanupFinalizer is set by the Kubernetes service controller of cloud providers until the load balancer is
// deleted.
const CleanupFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// Metadata that Weir writes on Nodes.
const (
	// PlaceLabel is the configuration of a node as a label value, if there are several load balancers.
	PlaceLabel = "weir.dev/load-balancer"
	// PreemptionAnnotation records the last evaluated eviction announcement.
	PreemptionAnnotation = "weir.dev/preemption"
)

// Names of the readiness gates of pods. The admission policy config/readiness-gates writes the label and the gate.
const (
	// GateLabel and its value select the pods with a gate.
	GateLabel      = "weir.dev/readiness-gate"
	GateLabelValue = "in-pool"
	// GateInPool is true once the pod's node is in every pool of every Service that selects the pod.
	GateInPool = "weir.dev/in-pool"
)

// ManagedBy labels the BackendPools that Weir creates. It is informational: tenants can set it.
const ManagedBy = "app.kubernetes.io/managed-by"

// Key returns the key of an object in stores and messages.
func Key(namespace, name string) string { return namespace + "/" + name }
