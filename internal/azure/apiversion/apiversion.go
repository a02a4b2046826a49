// SPDX-License-Identifier: Apache-2.0

// Package apiversion decides which api-version a request for a resource has. It sends nothing.
package apiversion

import (
	"regexp"
	"strings"
	"sync"
)

// The api-versions of requests: of Microsoft.Compute one that has etags of scale sets and of their instances, and
// is in all clouds. A resource that has a property of a newer one is read and written with that.
const (
	Network = "2025-05-01"
	Compute = "2024-07-01"
)

// named finds the stable api-versions in a message of Azure.
var named = regexp.MustCompile(`(?i)\bAPI version '?"?(\d{4}-\d{2}-\d{2})(?:[^0-9A-Za-z-]|$)`)

// Newer returns the newest stable api-version that a message names; empty if none is newer than what was sent.
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

// most bounds what is remembered: a resource that is forgotten costs a rejected write.
const most = 1024

// Memory has the resources with properties of newer api-versions. It is safe for concurrent use; its zero value has
// none.
type Memory struct {
	mu sync.Mutex
	by map[string]string // by id in lower case
}

// Of returns the api-version for a resource, by its type and its id.
func (m *Memory) Of(kind, id string) string {
	base := Network
	if strings.HasPrefix(kind, "Microsoft.Compute/") {
		base = Compute
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(base, m.by[strings.ToLower(id)])
}

// Learn remembers the api-version that a resource needs.
func (m *Memory) Learn(id, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil || len(m.by) >= most {
		m.by = map[string]string{}
	}
	m.by[strings.ToLower(id)] = version
}
