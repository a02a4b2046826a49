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

// Service is what the API server holds of a Service, as far as its load balancer goes.
type Service struct {
	// Name is its namespace and name, with a slash.
	Name string
	UID  string
	// Created is when it was created.
	Created time.Time
	// Generation is that of its spec, where the API server counts it.
	Generation int64
	Ownership
	Record Record
	// Shown are the addresses of its status.
	Shown []netip.Addr
	// Programmed is the reason of that condition in its status; empty if there is none.
	Programmed string
	// Object is what its load balancer is made from, without the names of its pools.
	Object service.Service
	// DryRun keeps all that it has in Azure as it is. AllowRemoval lets its own addresses be
	// taken away. WriteAgain is what a person wrote who wants a fight to be taken up again.
	DryRun, AllowRemoval bool
	WriteAgain           string
	// Problems are those of Weir's own annotations.
	Problems []service.Problem
}

// Record is what Weir has written down on a Service.
type Record struct {
	// Places are the names of the load balancers that may hold parts of it, that where it
	// belongs first, and Groups the further resource groups that may have public IPs of it.
	Places, Groups []string
	// LinkGroups are the resource groups that may have a Private Link Service of it.
	LinkGroups []string
	// Class is that under which it is served; nil if that is not on record.
	Class *string
}

// Ownership says whose a Service is.
type Ownership struct {
	// LoadBalancer is true for spec.type LoadBalancer; Class is its spec.loadBalancerClass.
	LoadBalancer bool
	Class        *string
	Deleting     bool
	// Finalizer is true with Weir's finalizer, Cleanup with that of Kubernetes' service
	// controller.
	Finalizer, Cleanup bool
}

func (o Ownership) class() string {
	if o.Class == nil {
		return ""
	}
	return *o.Class
}

// Ours reports whether a Service has a load balancer of Weir's that serves a class, or is to
// have one.
func (o Ownership) Ours(class string) bool {
	return !o.Deleting && o.LoadBalancer && o.class() == class
}

// Inherits reports whether nobody but Weir looks after the finalizers of a Service's load
// balancer: where Weir serves the Services without a class no other service controller runs.
func (o Ownership) Inherits(class string) bool { return class == "" && o.Class == nil }

// Inherited reports whether another service controller has served a Service that is Weir's now.
func (o Ownership) Inherited(class string) bool {
	return o.Inherits(class) && o.LoadBalancer && o.Cleanup
}

// Held reports whether Azure may hold something of a Service that Weir has to remove.
func (o Ownership) Held(class string) bool { return o.Finalizer || o.Inherited(class) }

// Kept reports whether a Service that Weir has served under another class keeps what it has in
// Azure. Its own class is not what changed then, for it cannot change while the type is
// LoadBalancer: the flag did. recorded is the class on record; what that does not tell is kept, too.
func (o Ownership) Kept(class string, recorded *string) bool {
	if !o.Finalizer || o.Deleting || !o.LoadBalancer || o.class() == class {
		return false
	}
	return recorded == nil || *recorded == o.class()
}

// Names reads a record of names, each once. Whoever may edit a Service may edit it, and each name
// costs reads.
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

// mostGroups bounds what is believed of a record of resource groups: each costs a read.
const mostGroups = 8

// Groups reads a record of resource groups. Whoever may edit a Service may edit it.
func Groups(record string) []string {
	groups := slices.DeleteFunc(Names(record), func(name string) bool {
		return lb.ResourceID{SubscriptionID: "s", ResourceGroup: name, Type: lb.TypePublicIP, Name: "n"}.Validate() != nil
	})
	return groups[:min(len(groups), mostGroups)]
}
