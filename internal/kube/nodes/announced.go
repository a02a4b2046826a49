// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/adminstate"
)

// announcements are those that need no record on their nodes, see adminstate.Heard. It
// holds no more of them than the API server does.
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

// firstDoubt reports whether it is asked for the first time.
func (a *announcements) firstDoubt() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.doubted
	a.doubted = true
	return first
}

// beginning returns at most limit bytes of a text, and holds on to no more of it.
func beginning(text string, limit int) string { return strings.Clone(text[:min(len(text), limit)]) }
