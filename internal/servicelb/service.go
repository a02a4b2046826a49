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
	Record     Record
	Shown      []netip.Addr
	Programmed string
	// Object is the input of the spec, without pool names.
	Object service.Service
	// DryRun prevents changes in Azure. AllowRemoval allows its addresses to be removed. WriteAgain is the
	// user's retry token for a conflict.
	DryRun, AllowRemoval bool
	WriteAgain           string
	Problems             []service.Problem
}

// Record is what Weir persisted on a Service.
type Record struct {
	// Places are the load balancers that may hold parts of it, the assigned one first. The others are the
	// additional resource groups that may hold its public IPs.
	Places, Groups []string
	// LinkGroups are the resource groups that may hold its Private Link Service.
	LinkGroups []string
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

func (o Ownership) class() string {
	if o.Class == nil {
		return ""
	}
	return *o.Class
}

// Ours reports whether a Weir that serves class owns the Service.
func (o Ownership) Ours(class string) bool {
	return !o.Deleting && o.LoadBalancer && o.class() == class
}

// Inherits reports whether only Weir handles the Service's finalizers: where Weir serves Services without a
// class, no other service controller runs.
func (o Ownership) Inherits(class string) bool { return class == "" && o.Class == nil }

// Inherited reports whether another service controller served one of Weir's Services before.
func (o Ownership) Inherited(class string) bool {
	return o.Inherits(class) && o.LoadBalancer && o.Cleanup
}

// Held reports whether Azure may hold parts that Weir must remove.
func (o Ownership) Held(class string) bool { return o.Finalizer || o.Inherited(class) }

// Kept reports whether a Service that Weir served under another class retains its resources. The class of a
// Service cannot change while its type is LoadBalancer, so the flag changed. recorded is the recorded class;
// nil also retains.
func (o Ownership) Kept(class string, recorded *string) bool {
	if !o.Finalizer || o.Deleting || !o.LoadBalancer || o.class() == class {
		return false
	}
	return recorded == nil || *recorded == o.class()
}

// Names parses a record of names without duplicates. Users can edit it, and each name costs reads.
func Names(record string) []string {
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

// mostGroups limits the resource groups of a record; each costs a read.
const mostGroups = 8

// Groups parses a record of resource groups. Users can edit it.
func Groups(record string) []string {
	groups := slices.DeleteFunc(Names(record), func(name string) bool {
		return lb.ResourceID{SubscriptionID: "s", ResourceGroup: name, Type: lb.TypePublicIP, Name: "n"}.Validate() != nil
	})
	return groups[:min(len(groups), mostGroups)]
}
