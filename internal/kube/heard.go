// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/adminstate"
)

// heard are the announcements that need no record on their nodes, see adminstate.Heard. It
// holds no more of them than the API server does.
type heard struct {
	mu      sync.Mutex
	events  adminstate.Heard
	doubted bool
}

func (h *heard) add(e *corev1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.events == nil {
		h.events = adminstate.Heard{}
	}
	h.events.Add(announced(e))
}

func (h *heard) covers(e *corev1.Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events.Covers(announced(e))
}

func (h *heard) forget(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.events, string(uid))
}

// firstDoubt reports whether it is asked for the first time.
func (h *heard) firstDoubt() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.doubted
	h.doubted = true
	return first
}

// beginning returns at most limit bytes of a text, and holds on to no more of it.
func beginning(text string, limit int) string { return strings.Clone(text[:min(len(text), limit)]) }
