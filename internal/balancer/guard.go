// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/securitygroup"
)

// guard has the security group admit whom Services say. Its round alone writes the group, and
// holds up no load balancer. It is of one goroutine.
type guard struct {
	id    lb.ResourceID
	group *securitygroup.Group
	log   *slog.Logger
	// ips and placements say what Services have that leave, and former what they had.
	ips        *publicip.Keeper
	placements *placements
	former     *former
	// refusals are those of the group.
	refusals refusals
	report   reporter
}

// round makes the next step of these jobs.
func (g *guard) round(ctx context.Context, jobs []*job) {
	// In which order load balancers are ready is chance: priorities are not to depend on it.
	slices.SortStableFunc(jobs, func(a, b *job) int { return strings.Compare(a.Service, b.Service) })
	jobs = g.lookUp(ctx, g.refusals.due(ctx, jobs, "", g.report.fail))
	for _, j := range newSearch(&g.refusals, "", g.write, g.report.fail).among(ctx, jobs) {
		j.steps = j.steps[1:]
		g.refusals.forget(j)
		g.former.forget(j.Owner)
		g.report.next(j)
	}
}

// write writes the group for these jobs.
func (g *guard) write(ctx context.Context, jobs []*job) (map[*job]error, error) {
	all := make([]*securitygroup.Request, len(jobs))
	for i, j := range jobs {
		g.former.note(j.Owner, j.Addresses) // should the outcome stay unknown
		all[i] = &securitygroup.Request{Demand: securitygroup.Demand{
			Service: j.Service, Owner: j.Owner, Desired: j.Desired, Addresses: j.Addresses, Shown: j.Shown,
			Had: g.former.addresses(j.Owner), On: j.On, Again: j.Again,
		}}
	}
	err := g.group.Write(ctx, all, logFor(g.log, "securityGroup", g.id.Name, jobs))
	refused := map[*job]error{}
	for i, j := range jobs {
		j.contested(all[i].Contest)
		if all[i].Err != nil {
			refused[j] = all[i].Err
			continue
		}
		j.Changed = j.Changed || all[i].Changed
		j.Note = all[i].Note
	}
	return refused, err
}
