// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/poolupdate"
)

// EventPoolContested is the event reason when a BackendPool becomes Contested.
const EventPoolContested = "BackendPoolContested"

const mostContested = 10

// contest sets the Contested condition while another controller keeps undoing Weir's writes.
func contest(s *v1alpha1.BackendPoolStatus, r poolupdate.Report, generation int64) {
	if len(r.Contested) == 0 {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionContested)
		return
	}
	setCondition(s, generation, v1alpha1.ConditionContested, metav1.ConditionTrue, v1alpha1.ReasonUndone, contestedText(r.Contested))
}

func contestedText(ips []netip.Addr) string {
	texts := members.Format(ips[:min(len(ips), mostContested)])
	if more := len(ips) - mostContested; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return "somebody else keeps taking out of the pool what Weir has written there, or keeps setting its admin state back: " +
		strings.Join(texts, ", ") + ". Weir repairs it whenever it looks"
}

func contested(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return meta.IsStatusConditionTrue(e.status.Conditions, v1alpha1.ConditionContested)
}
