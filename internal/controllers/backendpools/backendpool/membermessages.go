// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/membership"
)

// maxExcludedNodes and maxNodeNames limit the excluded and the retained nodes in a message.
const (
	maxExcludedNodes = 5
	maxNodeNames     = 12
)

// RetainedMessage describes the members that are kept up although their eviction is announced.
func RetainedMessage(set membership.Set) string {
	announced := len(set.KeptUp)
	for _, d := range set.Draining {
		if d.EvictionAnnounced {
			announced++
		}
	}
	names := make([]string, len(set.KeptUp))
	for i, d := range set.KeptUp {
		names[i] = d.Node
	}
	return fmt.Sprintf("kept in the pool: %d of %s are about to be evicted at once, so these remain Up: %s",
		announced, humanize.FormatCount(len(set.Addresses), "member"), humanize.FormatList(names, maxNodeNames))
}

// InSyncMessage describes a pool that is in sync, with its draining, retained and excluded nodes.
func InSyncMessage(set membership.Set) string {
	text := "in sync with " + humanize.FormatCount(len(set.Addresses), "node")
	if len(set.Addresses) == 0 {
		text = "in sync with no nodes"
	}
	if n := len(set.Draining); n > 0 {
		text += fmt.Sprintf(", %d of them Down", n)
	}
	if set.RetainedStale > 0 {
		text += fmt.Sprintf("; %d of them remain until the watches of the API server are in sync again", set.RetainedStale)
	}
	if len(set.KeptUp) > 0 {
		text += "; " + RetainedMessage(set)
	}
	if n := len(set.LastUp); n > 0 {
		names := make([]string, n)
		for i, d := range set.LastUp {
			names[i] = d.Node
		}
		text += "; no other member takes new flows, so these remain Up although they drain: " + humanize.FormatList(names, maxNodeNames)
	}
	if kept := set.DescribeExcluded(); len(kept) > 0 {
		text += "; kept out: " + humanize.FormatMessage(humanize.FormatList(kept, maxExcludedNodes), humanize.MaxMessage/4)
	}
	out := set.DescribeMissing(maxExcludedNodes, humanize.MaxMessage/8, humanize.FormatMessage)
	if set.EndpointsWithoutNode > 0 {
		out = append(out, humanize.FormatCount(set.EndpointsWithoutNode, "endpoint")+" without a node name")
	}
	if set.UnsupportedSlices > 0 {
		out = append(out, humanize.FormatCount(set.UnsupportedSlices, "slice")+" without IP addresses (address type FQDN)")
	}
	if len(out) > 0 {
		text += "; left out: " + strings.Join(out, "; ")
	}
	return text
}
