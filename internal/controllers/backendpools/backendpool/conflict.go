// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// EventPoolConflict is the event reason when a BackendPool becomes Contested.
const EventPoolConflict = "BackendPoolContested"

const maxConflictAddresses = 10

// setConflictCondition sets the Contested condition while another controller keeps undoing Weir's writes.
func setConflictCondition(s *v1alpha1.BackendPoolStatus, r updater.Report, generation int64) {
	reason, message := contention(r)
	old := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionContested)
	switch {
	case reason != "":
		setCondition(s, generation, v1alpha1.ConditionContested, metav1.ConditionTrue, reason, message)
	case old != nil && old.Reason == v1alpha1.ReasonOverlappingNodes && !r.InSync: // the pool was not compared
	default:
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionContested)
	}
}

// contention returns why a pool is Contested; "" if it is not. A rejected pool has its reason in Synced.
func contention(r updater.Report) (reason, message string) {
	switch {
	case len(r.Conflicting) > 0:
		return v1alpha1.ReasonUndone, conflictMessage(r.Conflicting)
	case len(r.Overlapping) > 0 && r.Outcome != diff.Rejected:
		return v1alpha1.ReasonOverlappingNodes, overlapMessage(r) + ". Weir keeps these members as they are, and never removes them: " + overlapRemedy
	}
	return "", ""
}

const overlapRemedy = "node addresses of clusters that share a pool must not overlap. Give one cluster other node addresses or another pool, " +
	"or remove these members from the pool if the other cluster no longer exists"

func overlapMessage(r updater.Report) string {
	return DescribePool(r.Pool) + " holds addresses of this cluster's nodes that another cluster has written: " + listAddresses(r.Overlapping)
}

func conflictMessage(ips []netip.Addr) string {
	return "another client keeps removing members that Weir has written, or keeps resetting their admin state: " +
		listAddresses(ips) + ". Weir repairs it with each check"
}

// listAddresses returns the first addresses, and the number of the others.
func listAddresses(ips []netip.Addr) string {
	texts := FormatAddresses(ips[:min(len(ips), maxConflictAddresses)])
	if more := len(ips) - maxConflictAddresses; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

func hasConflict(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return meta.IsStatusConditionTrue(e.status.Conditions, v1alpha1.ConditionContested)
}
