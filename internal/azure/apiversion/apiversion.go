// SPDX-License-Identifier: Apache-2.0

// Package apiversion selects the api-version of a request. It performs no I/O.
package apiversion

import (
	"regexp"
	"strings"
	"sync"
)

// Default api-versions. That of Microsoft.Compute has etags for scale sets and is available in all
// clouds.
const (
	Network = "2025-05-01"
	Compute = "2024-07-01"
)

var named = regexp.MustCompile(`(?i)\bAPI version '?"?(\d{4}-\d{2}-\d{2})(?:[^0-9A-Za-z-]|$)`)

// Newer returns the newest stable api-version in a message; empty if none is newer than sent.
func Newer(message, sent string) string {
	newest := ""
	for _, version := range named.FindAllStringSubmatch(message, -1) {
		newest = max(newest, version[1])
	}
	if newest <= sent {
		return ""
	}
	return newest
}

// most limits the memory. A forgotten resource costs a rejected write.
const most = 1024

// Memory maps resources to newer api-versions. It is safe for concurrent use.
type Memory struct {
	mu sync.Mutex
	by map[string]string // by lower-case ID
}

// Of returns the api-version for a resource.
func (m *Memory) Of(kind, id string) string {
	base := Network
	if strings.HasPrefix(kind, "Microsoft.Compute/") {
		base = Compute
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(base, m.by[strings.ToLower(id)])
}

// Learn records the api-version that a resource needs.
func (m *Memory) Learn(id, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil || len(m.by) >= most {
		m.by = map[string]string{}
	}
	m.by[strings.ToLower(id)] = version
}
