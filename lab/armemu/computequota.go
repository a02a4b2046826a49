// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
	"time"
)

// computeQuotas are the request quotas of the compute provider. The emulator reports what is left
// but never throttles on them.
var computeQuotas = []struct {
	suffix string
	size   int
	length time.Duration
}{{"3Min", 60, 3 * time.Minute}, {"30Min", 300, 30 * time.Minute}}

// countCompute reports the remaining compute quota in the response headers.
func (e *Emulator) countCompute(x *exchange) *Problem {
	if e.limits.limits == nil || x.route.namespace != compute || x.route.kind == KindPoll || x.route.problem != nil {
		return nil
	}
	policy := compute + "/" + computePolicy(x.route)
	var left []string
	for _, q := range computeQuotas {
		key := bucketKey{subscription: x.route.subscription, class: policy + q.suffix}
		w := e.limits.windows[key]
		if w == nil || x.now.Sub(w.opened) >= q.length {
			w = &quotaWindow{opened: x.now}
			e.limits.windows[key] = w
		}
		w.count++
		left = append(left, fmt.Sprintf("%s;%d", key.class, max(q.size-w.count, 0)))
	}
	x.header.Set("x-ms-ratelimit-remaining-resource", strings.Join(left, ","))
	x.header.Set("x-ms-request-charge", "1")
	return nil
}

// computePolicy returns the name of a quota. The name for a scale set's PUT is observed, the others
// are assumed.
func computePolicy(r route) string {
	of := r.id.root.operation
	if r.id.child != nil {
		of = r.id.child.operation
	}
	of = strings.Replace(of, "VirtualMachine", "VM", 1)
	switch {
	case r.kind == KindDelete:
		return "Delete" + of
	case r.kind == KindAction:
		return of + "Actions"
	case r.kind != KindPut && r.kind != KindPatch:
		return "Get" + of
	case r.id.root == scaleSetKind:
		return "Create" + of
	}
	return "Put" + of
}
