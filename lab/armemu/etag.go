// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"slices"
	"strings"
)

// Azure changes the etag of a load balancer when its pools' interfaces or its private link services
// change, and that of a public IP when it is associated or released, without a write.

func (e *Emulator) renewOtherEtags(written resourceID, before, got *referenceIndex) {
	if e.restoring {
		return
	}
	if before == nil {
		before = &referenceIndex{}
	}
	for _, key := range changedKeys(before.privateLinks, got.privateLinks) {
		balancer, _, _ := strings.Cut(key, frontendPathSegment)
		if agg := e.aggregates[balancer]; agg != nil && agg.id.rootKey() != written.rootKey() {
			e.renewEtag(agg)
		}
	}
	for _, key := range slices.Concat(changedKeys(before.pool, got.pool), changedKeys(before.publicIP, got.publicIP)) {
		id, err := parseID(key)
		if err != nil || id.rootKey() == written.rootKey() {
			continue
		}
		if agg := e.aggregates[id.rootKey()]; agg != nil {
			e.renewEtag(agg)
		}
	}
}

func changedKeys(before, got map[string][]string) []string {
	keys := maps.Clone(got)
	if keys == nil {
		keys = map[string][]string{}
	}
	maps.Copy(keys, before)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool {
		return sameIDs(before[key], got[key])
	})
}

func sameIDs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
