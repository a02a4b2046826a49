// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/adminstate"
)

// announcements tracks announcements that need no record on their node, see adminstate.Heard. It is limited
// by the events in the API server.
type announcements struct {
	mu      sync.Mutex
	events  adminstate.Heard
	doubted bool
}

func (a *announcements) add(e *corev1.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events == nil {
		a.events = adminstate.Heard{}
	}
	a.events.Add(announced(e))
}

func (a *announcements) covers(e *corev1.Event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.events.Covers(announced(e))
}

func (a *announcements) forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.events, string(uid))
}

// firstDoubt reports whether this is the first call.
func (a *announcements) firstDoubt() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.doubted
	a.doubted = true
	return first
}

// beginning returns a copy of at most limit bytes, so that the rest can be freed.
func beginning(text string, limit int) string { return strings.Clone(text[:min(len(text), limit)]) }
