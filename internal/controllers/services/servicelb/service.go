// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Service is the part of a Kubernetes Service that matters for its load balancer.
type Service struct {
	// Name is namespace/name.
	Name       string
	UID        string
	Created    time.Time
	Generation int64
	Ownership
	Record           Record
	StatusAddresses  []netip.Addr
	ProgrammedReason string
	// Object is the input of the spec, without pool names.
	Object service.Service
	// DryRun prevents changes in Azure. AllowRemoval allows its addresses to be removed. RetryToken is the
	// user's retry token for a conflict.
	DryRun, AllowRemoval bool
	RetryToken           string
	Problems             []service.Problem
}

// Record is what Weir persisted on a Service.
type Record struct {
	// LoadBalancers are the load balancers that may hold parts of it, the assigned one first. The others are the
	// additional resource groups that may hold its public IPs.
	LoadBalancers, Groups []string
	// LinkGroups are the resource groups that may hold its Private Link Service.
	LinkGroups []string
	// Properties are the annotations of properties that Weir may have written.
	Properties []string
	// Class is the class it is served under; nil if not recorded.
	Class *string
}

// Ownership decides whether Weir owns a Service.
type Ownership struct {
	// LoadBalancer means spec.type is LoadBalancer; Class is spec.loadBalancerClass.
	LoadBalancer bool
	Class        *string
	Deleting     bool
	// Finalizer is Weir's finalizer, Cleanup that of the Kubernetes service controller.
	Finalizer, Cleanup bool
}

func (o Ownership) className() string {
	if o.Class == nil {
		return ""
	}
	return *o.Class
}

// IsManaged reports whether a Weir that serves class owns the Service.
func (o Ownership) IsManaged(class string) bool {
	return !o.Deleting && o.LoadBalancer && o.className() == class
}

// HasAllFinalizers reports whether only Weir handles the Service's finalizers: where Weir serves Services without a
// class, no other service controller runs.
func (o Ownership) HasAllFinalizers(class string) bool { return class == "" && o.Class == nil }

// IsInherited reports whether another service controller served one of Weir's Services before.
func (o Ownership) IsInherited(class string) bool {
	return o.HasAllFinalizers(class) && o.LoadBalancer && o.Cleanup
}

// MayHaveResources reports whether Azure may hold parts that Weir must remove.
func (o Ownership) MayHaveResources(class string) bool { return o.Finalizer || o.IsInherited(class) }

// IsRetained reports whether a Service that Weir served under another class retains its resources. The class of a
// Service cannot change while its type is LoadBalancer, so the flag changed. recorded is the recorded class;
// nil also retains.
func (o Ownership) IsRetained(class string, recorded *string) bool {
	if !o.Finalizer || o.Deleting || !o.LoadBalancer || o.className() == class {
		return false
	}
	return recorded == nil || *recorded == o.className()
}

// ParseNames parses a record of names without duplicates. Users can edit it, and each name costs reads.
func ParseNames(record string) []string {
	var names []string
	known := map[string]bool{}
	for name := range strings.SplitSeq(record, ",") {
		name = strings.TrimSpace(name)
		if folded := strings.ToLower(name); name != "" && !known[folded] {
			known[folded] = true
			names = append(names, name)
		}
	}
	return names
}

// maxGroups limits the resource groups of a record; each costs a read.
const maxGroups = 8

// ParseGroups parses a record of resource groups. Users can edit it.
func ParseGroups(record string) []string {
	groups := slices.DeleteFunc(ParseNames(record), func(name string) bool {
		return lb.ResourceID{SubscriptionID: "s", ResourceGroup: name, Type: lb.TypePublicIP, Name: "n"}.Validate() != nil
	})
	return groups[:min(len(groups), maxGroups)]
}
