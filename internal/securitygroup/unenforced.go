// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/service"
)

// Unenforced returns why the group would keep nobody from a Service that says who may connect, if
// such Services are to be refused: before anything is made for it. Otherwise the Service is
// served, and told; see note.
func (g *Group) Unenforced(ctx context.Context, access service.Access) error {
	if !g.cfg.RequireEffective || access.Unruled || !access.Limited() {
		return nil
	}
	const way = "; requireEffectiveRestrictions of azure.json refuses Services that say who may connect until that is mended"
	shown, err := g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.ID)
	switch f := fault.From(err); {
	case f != nil && f.Class == fault.Stale:
		return fmt.Errorf("resource group %s has no %s%s", g.cfg.ID.ResourceGroup, g.name(), way)
	case err != nil:
		return fmt.Errorf("%s: %w", g.name(), err)
	case shown.Subnets+shown.Interfaces == 0:
		return errors.New(g.name() + " is on no subnet and on no network interface: its rules have no effect" + way)
	}
	return nil
}
