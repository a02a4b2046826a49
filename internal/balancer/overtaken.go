// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"maps"
	"slices"

	"weir.dev/weir/internal/fault"
)

// What a pass writes. These are labels of a metric.
const (
	resourceBalancer      = "load balancer"
	resourcePublicIP      = "public IP"
	resourceSecurityGroup = "security group"
)

// twice has a trial read, plan and write, and once more if somebody else wrote in between: that
// is everyday, and no failure to tell of. A second 412 is one. What a trial finds in the midst of
// another's write ends it as always.
func (b *Balancers) twice(resource string, try func() (map[*job]error, error)) (map[*job]error, error) {
	refused, err := try()
	if f := fault.From(err); !f.Overtaken() || !f.RetryAt.IsZero() {
		return refused, err
	}
	refused, err = try()
	b.overtaken(resource, err == nil)
	return refused, err
}

// overtaken counts a write that was tried twice.
func (b *Balancers) overtaken(resource string, settled bool) {
	if b.cfg.Overtaken != nil {
		b.cfg.Overtaken(resource, settled)
	}
}

// met412 reports whether the write of a public IP was refused because somebody else wrote it
// since it was read: Azure does so itself when a load balancer takes it, or lets it go.
func (inv *inventory) met412() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(inv.failed)), func(err error) bool { return fault.From(err).Overtaken() })
}
