// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Request is what a Service wants of public IPs in one round, or several, and what came of it.
// It is of one goroutine at a time.
type Request struct {
	// Service is its namespace and name, with a slash, and Owner the first part of the names of
	// all that is the Service's.
	Service, Owner string
	// Desired is what it wants; nil if it wants nothing any more.
	Desired *service.Spec
	Asked   contest.Asked
	// Groups are the names of further resource groups that may have some which were made for it.
	Groups []string
	// Leaves is true if it goes from the load balancer of the round, and Moves if it is on
	// another one.
	Leaves, Moves bool
	// Lost are the resource groups of those that its frontends lost.
	Lost []lb.ResourceID

	// Replaces is true once it has to let go of all on the load balancer where it belongs; then
	// it leaves first.
	Replaces bool
	// Changed is true if something was written for it.
	Changed bool
	// Err is why the round has nothing for it.
	Err error
	// keys are those of the public IPs of its frontends; empty for private ones.
	keys []string
}

// group is a resource group, without a name.
func group(id lb.ResourceID) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Type: lb.TypePublicIP}
}

// groups are the resource groups where a Service has public IPs, or may have some.
func (c *Config) groups(req *Request) []lb.ResourceID {
	all := append([]lb.ResourceID{group(c.Group)}, req.Lost...)
	for _, name := range req.Groups {
		g := group(c.Group)
		g.ResourceGroup = name
		all = append(all, g)
	}
	return append(all, groupsOf(req.Desired)...)
}

// groupsOf are the resource groups of the public IPs that a Service wants.
func groupsOf(spec *service.Spec) []lb.ResourceID {
	if spec == nil {
		return nil
	}
	var all []lb.ResourceID
	for _, f := range spec.Frontends {
		if f.PublicIP != nil {
			all = append(all, group(f.PublicIP.ID))
		}
	}
	return all
}
