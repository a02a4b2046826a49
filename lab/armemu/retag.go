// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"slices"
	"strings"
)

// The etag of a load balancer changes when interfaces join or leave its pools, or a private link
// service a frontend of it, and that of a public IP when it is associated or freed, though nobody writes them.

// retagOthers gives new etags to what a write of another resource has changed: was and is are
// who refers to whom before and after it.
func (e *Emulator) retagOthers(written resourceID, was, is *links) {
	if e.loading {
		return
	}
	if was == nil {
		was = &links{}
	}
	for _, key := range moved(was.published, is.published) {
		balancer, _, _ := strings.Cut(key, inFrontends)
		if agg := e.aggregates[balancer]; agg != nil && agg.id.rootKey() != written.rootKey() {
			e.retag(agg)
		}
	}
	for _, key := range slices.Concat(moved(was.pool, is.pool), moved(was.publicIP, is.publicIP)) {
		id, err := parseID(key)
		if err != nil || id.rootKey() == written.rootKey() {
			continue
		}
		if agg := e.aggregates[id.rootKey()]; agg != nil {
			e.retag(agg)
		}
	}
}

// moved are the keys, in order, under which not the same ids stand.
func moved(was, is map[string][]string) []string {
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
