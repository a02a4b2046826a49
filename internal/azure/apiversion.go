// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"regexp"
	"strings"
	"sync"
)

// Default api-versions. That of Microsoft.Compute has etags for scale sets and is available in all
// clouds.
const (
	networkAPIVersion = "2025-05-01"
	computeAPIVersion = "2024-07-01"
)

var versionPattern = regexp.MustCompile(`(?i)\bAPI version '?"?(\d{4}-\d{2}-\d{2})(?:[^0-9A-Za-z-]|$)`)

// findNewerVersion returns the newest stable api-version in a message; empty if none is newer than sent.
func findNewerVersion(message, sent string) string {
	newest := ""
	for _, version := range versionPattern.FindAllStringSubmatch(message, -1) {
		newest = max(newest, version[1])
	}
	if newest <= sent {
		return ""
	}
	return newest
}

// maxResources limits the memory. A forgotten resource costs a rejected write.
const maxResources = 1024

// versionCache maps resources to newer api-versions. It is safe for concurrent use.
type versionCache struct {
	mu       sync.Mutex
	versions map[string]string // by lower-case ID
}

// ResourceVersion returns the api-version for a resource.
func (v *versionCache) ResourceVersion(kind, id string) string {
	base := networkAPIVersion
	if strings.HasPrefix(kind, "Microsoft.Compute/") {
		base = computeAPIVersion
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(base, v.versions[strings.ToLower(id)])
}

// StoreVersion records the api-version that a resource needs.
func (v *versionCache) StoreVersion(id, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.versions == nil || len(v.versions) >= maxResources {
		v.versions = map[string]string{}
	}
	v.versions[strings.ToLower(id)] = version
}
