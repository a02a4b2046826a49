// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// withoutUnknownTags writes the rules without service tags that Azure may not know, after Azure rejected
// them; otherwise the group would remain open. A tag in an existing rule is known. It reports whether the
// write succeeded.
func (g *Group) withoutUnknownTags(ctx context.Context, requests []*Request, observed lb.SecurityGroup, rejected error, valid func() bool, log *slog.Logger) bool {
	f := armerror.FromError(rejected)
	if f == nil || f.Class != armerror.Terminal || f.Reason != "refused" && f.Reason != "operation_failed" || len(requests) != 1 || requests[0].Desired == nil {
		return false
	}
	narrowed := requests[0].Demand
	spec := *narrowed.Desired
	spec.Access.HasRestriction = spec.Access.IsLimited()
	spec.Access.Tags = slices.DeleteFunc(slices.Clone(spec.Access.Tags), func(tag string) bool { return !hasServiceTag(observed.Rules, tag) })
	if len(spec.Access.Tags) == len(narrowed.Desired.Access.Tags) {
		return false
	}
	narrowed.Desired = &spec
	err := g.writeOnce(ctx, []*Request{{Demand: narrowed}}, valid, log)
	if err != nil {
		log.WarnContext(ctx, "security group not closed to clients that the Service does not name any more", "err", err)
	}
	return err == nil
}

func hasServiceTag(rules []lb.SecurityRule, tag string) bool {
	return slices.ContainsFunc(rules, func(r lb.SecurityRule) bool {
		return slices.ContainsFunc(r.Sources, func(source string) bool { return strings.EqualFold(source, tag) })
	})
}
