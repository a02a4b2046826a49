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

// Contest is about what one Service has in one resource, for people: Weir wrote it, saw it in
// Azure, and found it undone twice, without the Service having changed what it wants.
type Contest struct {
	// In names the resource.
	In string
	// Undone says of each part that is undone what it is now, and what Weir wants.
	Undone []string
	// Since is when the contest was found.
	Since time.Time
	// Until is before when nothing is written; zero if Weir has tried again since, and has
	// not looked yet what became of that.
	Until time.Time
}

// Undone is a part that is not as Weir wrote it: its kind and name, and what it is now.
type Undone struct{ Part, Text string }

// UndoneBy is the part that a plan would write again.
func UndoneBy(c plan.Change) Undone {
	return Undone{Part: string(c.Kind) + " " + strings.ToLower(c.Name), Text: c.Undoes()}
}

// Asked is what a Service asks for. Another one makes a contest another one: the Service has
// changed, or a person asks.
type Asked struct {
	Desired *service.Spec
	On      lb.LoadBalancerKey
	Again   string
}

// In is where a Service has what is contested.
type In string

// The resources of a Service.
const (
	LoadBalancer  In = "load balancer"
	PublicIPs     In = "public IPs"
	SecurityGroup In = "security group"
	PrivateLinks  In = "private link services"
)

// key is what one Service has in one resource.
type key struct {
	in      In
	service string
}

// Contests are those about what Services have. Its methods may be called from any goroutine.
// The zero value has none.
type Contests struct {
	mu      sync.Mutex // guards what follows
	records map[key]*record
}

// Leave takes the parts of a Service that differ from what it wants now, and reports whether
// they have to be left as they are. If they have not, whoever asks writes them. name is that of
// the resource, for people.
func (c *Contests) Leave(in In, service string, asked Asked, name string, differ []Undone, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := key{in, service}
	r := c.records[at]
	if r == nil || !r.asked.equal(asked) {
		r = &record{asked: asked, found: map[string]time.Time{}}
		if c.records == nil {
			c.records = map[key]*record{}
		}
		c.records[at] = r
	}
	return r.look(name, differ, now)
}

// ShownOtherwise notes that Azure showed parts of a Service otherwise than they had just been
// written.
func (c *Contests) ShownOtherwise(in In, service string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.records[key{in, service}]; r != nil {
		r.shownOtherwise(now)
	}
}

// Shown notes that Azure has shown all parts of a Service as they were written, and returns
// the contest about them; nil if there is none.
func (c *Contests) Shown(in In, service string) *Contest {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[key{in, service}]
	if r == nil {
		return nil
	}
	return r.shown()
}

// Forget forgets the contests about a Service in these resources.
func (c *Contests) Forget(service string, from ...In) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range from {
		delete(c.records, key{in, service})
	}
}
