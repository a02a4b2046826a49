// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
	"time"
)

// computeQuotas are only reported, never enforced.
var computeQuotas = []struct {
	suffix string
	size   int
	length time.Duration
}{{"3Min", 60, 3 * time.Minute}, {"30Min", 300, 30 * time.Minute}}

func (e *Emulator) countCompute(x *exchange) *Problem {
	if e.limits.limits == nil || x.route.namespace != compute || x.route.kind == KindPoll || x.route.problem != nil {
		return nil
	}
	policy := compute + "/" + computePolicy(x.route)
	var remaining []string
	for _, q := range computeQuotas {
		key := bucketKey{subscription: x.route.subscription, class: policy + q.suffix}
		w := e.limits.windows[key]
		if w == nil || x.now.Sub(w.opened) >= q.length {
			w = &quotaWindow{opened: x.now}
			e.limits.windows[key] = w
		}
		w.count++
		remaining = append(remaining, fmt.Sprintf("%s;%d", key.class, max(q.size-w.count, 0)))
	}
	x.header.Set("x-ms-ratelimit-remaining-resource", strings.Join(remaining, ","))
	x.header.Set("x-ms-request-charge", "1")
	return nil
}

// computePolicy: only the name for a scale set's PUT is observed.
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
