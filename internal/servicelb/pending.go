// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"net/netip"
	"reflect"

	"weir.dev/weir/internal/balancer"
)

// Pending is the last request for a Service.
type Pending struct {
	asked *balancer.Request
	// Running is true until the result is there, and Result is kept until it is written down.
	Running bool
	Result  *balancer.Result
	// selection and nodes are what it was made from; see Level.
	selection string
	nodes     []netip.Addr
}

// asks takes in a request that is about to be queued.
func (p *Pending) asks(req balancer.Request, selection string, nodes []netip.Addr) {
	*p = Pending{asked: &req, Running: true, selection: selection, nodes: nodes}
}

// ended takes in what came of it; nil is nothing yet.
func (p *Pending) ended(r *balancer.Result) {
	if r != nil {
		p.Running, p.Result = false, r
	}
}

// settled forgets the result.
func (p *Pending) settled() { p.Result = nil }

// same reports whether a request is another try of the last one, or a look.
func (p *Pending) same(req balancer.Request) bool {
	return p.asked != nil && p.asked.On == req.On && reflect.DeepEqual(p.asked.Desired, req.Desired)
}
