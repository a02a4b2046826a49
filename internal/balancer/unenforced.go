// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/fault"
)

// unenforced returns why the security group would keep nobody from a Service that says who may
// connect, if azure.json has such Services refused: before anything is made for it. Otherwise
// the Service is served, and told; see guard.
func (b *Balancers) unenforced(ctx context.Context, p Placing) error {
	access, group := p.Desired.Access, b.cfg.SecurityGroup
	if !b.cfg.RequireEffectiveRestrictions || group.Name == "" || access.Unruled || !access.Limited() {
		return nil
	}
	const way = "; requireEffectiveRestrictions of azure.json refuses Services that say who may connect until that is mended"
	shown, err := b.cfg.Azure.GetSecurityGroup(ctx, group)
	switch f := fault.From(err); {
	case f != nil && f.Class == fault.Stale:
		return fmt.Errorf("resource group %s has no security group %s%s", group.ResourceGroup, group.Name, way)
	case err != nil:
		return fmt.Errorf("security group %s: %w", group.Name, err)
	case shown.Subnets+shown.Interfaces == 0:
		return errors.New("security group " + group.Name + " is on no subnet and on no network interface: its rules have no effect" + way)
	}
	return nil
}
