// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/members"
	"weir.dev/weir/internal/pool/updater"
)

// EventPoolConflict is the event reason when a BackendPool becomes Contested.
const EventPoolConflict = "BackendPoolContested"

const maxConflictAddresses = 10

// setConflictCondition sets the Contested condition while another controller keeps undoing Weir's writes.
func setConflictCondition(s *v1alpha1.BackendPoolStatus, r updater.Report, generation int64) {
	if len(r.Conflicting) == 0 {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionContested)
		return
	}
	setCondition(s, generation, v1alpha1.ConditionContested, metav1.ConditionTrue, v1alpha1.ReasonUndone, conflictMessage(r.Conflicting))
}

func conflictMessage(ips []netip.Addr) string {
	texts := members.FormatAddresses(ips[:min(len(ips), maxConflictAddresses)])
	if more := len(ips) - maxConflictAddresses; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return "another client keeps removing members that Weir has written, or keeps resetting their admin state: " +
		strings.Join(texts, ", ") + ". Weir repairs it with each check"
}

func hasConflict(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return meta.IsStatusConditionTrue(e.status.Conditions, v1alpha1.ConditionContested)
}
