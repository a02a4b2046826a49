// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// Contest is a conflict about one Service in one resource: another client has twice reverted what
// Weir wrote, although the Service did not change.
type Contest struct {
	// In is the resource's name.
	In string
	// Undone describes each reverted part: what it is, and what Weir wants.
	Undone []string
	Since  time.Time
	// Until is when Weir writes again; zero if it has, and has not read the result.
	Until time.Time
}

// Undone is a reverted part and what it is now.
type Undone struct{ Part, Text string }

// UndoneBy returns the part that c would write again.
func UndoneBy(c plan.Change) Undone {
	return Undone{Part: string(c.Kind) + " " + strings.ToLower(c.Name), Text: c.Undoes()}
}

// Asked is a Service's request. A different one starts over.
type Asked struct {
	Desired *service.Spec
	On      lb.LoadBalancerKey
	Again   string
}

// In is the kind of a resource.
type In string

// The resources of a Service.
const (
	LoadBalancer  In = "load balancer"
	PublicIPs     In = "public IPs"
	SecurityGroup In = "security group"
	PrivateLinks  In = "private link services"
)

type key struct {
	in      In
	service string
}

// Contests tracks conflicts. Safe for concurrent use; the zero value is ready.
type Contests struct {
	mu      sync.Mutex // guards the fields below
	records map[key]*record
}

// Leave processes the parts of a Service that are out of sync, and reports whether to leave them
// unchanged. name is the resource's, for messages.
func (c *Contests) Leave(in In, service string, desired Asked, name string, changed []Undone, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := key{in, service}
	r := c.records[at]
	if r == nil || !r.asked.equal(desired) {
		r = &record{asked: desired, found: map[string]time.Time{}}
		if c.records == nil {
			c.records = map[key]*record{}
		}
		c.records[at] = r
	}
	return r.look(name, changed, now)
}

// ShownOtherwise records that Azure did not show parts of a Service as just written.
func (c *Contests) ShownOtherwise(in In, service string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.records[key{in, service}]; r != nil {
		r.shownOtherwise(now)
	}
}

// Shown records that Azure shows all parts of a Service as written, and returns the conflict about
// them, or nil.
func (c *Contests) Shown(in In, service string) *Contest {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[key{in, service}]
	if r == nil {
		return nil
	}
	return r.shown()
}

// Forget drops a Service's conflicts in these resources.
func (c *Contests) Forget(service string, from ...In) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range from {
		delete(c.records, key{in, service})
	}
}
