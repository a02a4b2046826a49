// SPDX-License-Identifier: Apache-2.0

package conflict

import (
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Conflict is a conflict about one Service in one resource: another client has twice reverted what
// Weir wrote, although the Service did not change.
type Conflict struct {
	// Resource is the resource's name.
	Resource string
	// Reverted describes each reverted part: what it is, and what Weir wants.
	Reverted []string
	Since    time.Time
	// Until is when Weir writes again; zero if it has, and has not read the result.
	Until time.Time
}

// RevertedPart is a reverted part and what it is now. IsResource is true if the whole resource is missing.
type RevertedPart struct {
	Part, Text string
	IsResource bool
}

// NewRevertedPart returns the part that c would write again.
func NewRevertedPart(c lb.Change) RevertedPart {
	return RevertedPart{Part: string(c.Kind) + " " + strings.ToLower(c.Name), Text: c.RevertText()}
}

// DesiredKey is a Service's request. A different one starts over.
type DesiredKey struct {
	Desired      *service.Spec
	LoadBalancer lb.LoadBalancerKey
	RetryToken   string
}

// Scope is the kind of a resource.
type Scope string

// The resources of a Service.
const (
	LoadBalancer  Scope = "load balancer"
	PublicIPs     Scope = "public IPs"
	SecurityGroup Scope = "security group"
	PrivateLinks  Scope = "private link services"
)

type conflictKey struct {
	scope   Scope
	service string
}

// Conflicts tracks conflicts. Safe for concurrent use; the zero value is ready.
type Conflicts struct {
	mu      sync.Mutex // guards the fields below
	records map[conflictKey]*record
}

// RecordReverts records the parts of a Service that are out of sync after a read, and reports whether to leave them
// unchanged. name is the resource's, for messages.
func (c *Conflicts) RecordReverts(in Scope, service string, desired DesiredKey, name string, changed []RevertedPart, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := conflictKey{in, service}
	r := c.records[at]
	if r == nil || !r.desired.isEqual(desired) {
		r = &record{desired: desired, reverted: map[string]reverts{}}
		if c.records == nil {
			c.records = map[conflictKey]*record{}
		}
		c.records[at] = r
	}
	return r.processRead(name, changed, now)
}

// RecordMismatch records that Azure did not show parts of a Service as just written.
func (c *Conflicts) RecordMismatch(in Scope, service string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.records[conflictKey{in, service}]; r != nil {
		r.addMismatch(now)
	}
}

// RecordMatch records that Azure shows all parts of a Service as written, and returns the conflict about
// them, or nil.
func (c *Conflicts) RecordMatch(in Scope, service string) *Conflict {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[conflictKey{in, service}]
	if r == nil {
		return nil
	}
	return r.confirmMatch()
}

// RemoveService drops a Service's conflicts in these resources.
func (c *Conflicts) RemoveService(service string, from ...Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range from {
		delete(c.records, conflictKey{in, service})
	}
}
