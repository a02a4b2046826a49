// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"slices"
	"strings"
)

// Azure changes the etag of a load balancer when its pools' interfaces or its private link services
// change, and that of a public IP when it is associated or released, without a write.

func (e *Emulator) renewOtherEtags(written resourceID, was, is *referenceIndex) {
	if e.restoring {
		return
	}
	if was == nil {
		was = &referenceIndex{}
	}
	for _, key := range changedKeys(was.privateLinks, is.privateLinks) {
		balancer, _, _ := strings.Cut(key, frontendPathSegment)
		if agg := e.aggregates[balancer]; agg != nil && agg.id.rootKey() != written.rootKey() {
			e.renewEtag(agg)
		}
	}
	for _, key := range slices.Concat(changedKeys(was.pool, is.pool), changedKeys(was.publicIP, is.publicIP)) {
		id, err := parseID(key)
		if err != nil || id.rootKey() == written.rootKey() {
			continue
		}
		if agg := e.aggregates[id.rootKey()]; agg != nil {
			e.renewEtag(agg)
		}
	}
}

func changedKeys(was, is map[string][]string) []string {
	all := maps.Clone(is)
	if all == nil {
		all = map[string][]string{}
	}
	maps.Copy(all, was)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool {
		return sameIDs(was[key], is[key])
	})
}

func sameIDs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
