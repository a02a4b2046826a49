// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
)

// EventLeftDown is the event reason for a BackendPool with Down addresses that Weir no longer manages.
const EventLeftDown = "AdminStateLeftDown"

const maxPoolNames = 20

const maxAddressNames = 12

// ReportStaleDown reports addresses that an earlier process left Down if admin states are disabled: an event per
// BackendPool and one log line.
func ReportStaleDown(ctx context.Context, snap *cache.Snapshot, events Recorder, log *slog.Logger) {
	var remaining []string
	addresses := 0
	for _, p := range sortedPools(snap) {
		if len(p.Status.Down) == 0 {
			continue
		}
		remaining = append(remaining, metadata.Key(p.Namespace, p.Name)+": "+downNames(p.Status.Down))
		addresses += len(p.Status.Down)
		events.Add(p, corev1.EventTypeWarning, EventLeftDown, humanize.FormatMessage("enableNodeAdminState is false, and Weir has left Down: "+downNames(p.Status.Down)+
			". They receive no new flows until it is true again, or until they are set to None in Azure.", humanize.MaxMessage))
	}
	if len(remaining) == 0 {
		return
	}
	log.WarnContext(ctx, "enableNodeAdminState is false, and Weir has left addresses Down: they receive no new flows until it is true again, or until they are set to None in Azure",
		"addresses", addresses, "backendPools", len(remaining), "among", remaining[:min(len(remaining), maxPoolNames)])
}

func sortedPools(snap *cache.Snapshot) []*v1alpha1.BackendPool {
	pools := cache.All[v1alpha1.BackendPool](snap.Pools)
	slices.SortFunc(pools, func(a, b *v1alpha1.BackendPool) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pools
}

func downNames(down []v1alpha1.DownAddress) string {
	var names []string
	for _, d := range down[:min(len(down), maxAddressNames)] {
		name := d.Address
		if d.Node != "" {
			name = d.Node + " (" + d.Address + ")"
		}
		names = append(names, name)
	}
	text := humanize.FormatMessage(strings.Join(names, ", "), humanize.MaxMessage/2)
	if n := len(down) - maxAddressNames; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
