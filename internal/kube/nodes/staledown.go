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
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/words"
)

// EventLeftDown is the event reason for a BackendPool with Down addresses that Weir no longer manages.
const EventLeftDown = "AdminStateLeftDown"

const maxPoolNames = 20

const maxAddressNames = 12

// ReportStaleDown reports addresses that an earlier process left Down if admin states are disabled: an event per
// BackendPool and one log line.
func ReportStaleDown(ctx context.Context, snap *view.Snapshot, events Recorder, log *slog.Logger) {
	var left []string
	addresses := 0
	for _, p := range sortedPools(snap) {
		if len(p.Status.Down) == 0 {
			continue
		}
		left = append(left, view.Key(p.Namespace, p.Name)+": "+downNames(p.Status.Down))
		addresses += len(p.Status.Down)
		events.Add(p, corev1.EventTypeWarning, EventLeftDown, words.FormatMessage("enableNodeAdminState is false, and Weir has left Down: "+downNames(p.Status.Down)+
			". No new flows go there until it is true again, or somebody sets them None in Azure.", words.MaxMessage))
	}
	if len(left) == 0 {
		return
	}
	log.WarnContext(ctx, "enableNodeAdminState is false, and Weir has left addresses Down: no new flows go there until it is true again, or somebody sets them None in Azure",
		"addresses", addresses, "backendPools", len(left), "among", left[:min(len(left), maxPoolNames)])
}

func sortedPools(snap *view.Snapshot) []*v1alpha1.BackendPool {
	all := view.All[v1alpha1.BackendPool](snap.Pools)
	slices.SortFunc(all, func(a, b *v1alpha1.BackendPool) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
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
	text := words.FormatMessage(strings.Join(names, ", "), words.MaxMessage/2)
	if n := len(down) - maxAddressNames; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
