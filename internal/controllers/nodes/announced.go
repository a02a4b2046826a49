// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/lb"
)

// announcements tracks announcements that need no record on their node, see lb.SeenEvents. It is limited
// by the events in the API server.
type announcements struct {
	mu           sync.Mutex
	events       lb.SeenEvents
	hasUntrusted bool
}

func (a *announcements) addEvent(e *corev1.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events == nil {
		a.events = lb.SeenEvents{}
	}
	a.events.AddEvent(evictionEvent(e))
}

func (a *announcements) isCovered(e *corev1.Event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.events.HasEvent(evictionEvent(e))
}

func (a *announcements) forgetEvent(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.events, string(uid))
}

// isFirstUntrusted reports whether this is the first call.
func (a *announcements) isFirstUntrusted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.hasUntrusted
	a.hasUntrusted = true
	return first
}

// truncateText returns a copy of at most limit bytes, so that the rest can be freed.
func truncateText(text string, limit int) string { return strings.Clone(text[:min(len(text), limit)]) }
