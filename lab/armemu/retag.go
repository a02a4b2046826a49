// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"slices"
	"strings"
)

// Azure changes the etag of a load balancer when interfaces join or leave its pools or a private
// link service starts or stops using a frontend, and that of a public IP when it is associated or
// released, without a write.

// retagOthers renews the etags of resources affected by a write of another; was and is are the
// links before and after it.
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

// moved returns the keys whose IDs changed, sorted.
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
