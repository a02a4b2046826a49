// SPDX-License-Identifier: Apache-2.0

package members

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/words"
)

// leftOut and nodesNamed limit the excluded and the spared nodes in a message.
const (
	leftOut    = 5
	nodesNamed = 12
)

// SparedMessage describes the members that are kept up although their eviction is announced.
func SparedMessage(set membership.Set) string {
	announced := len(set.Spared)
	for _, d := range set.Draining {
		if d.Announced {
			announced++
		}
	}
	names := make([]string, len(set.Spared))
	for i, d := range set.Spared {
		names[i] = d.Node
	}
	return fmt.Sprintf("kept in the pool: %d of %s are announced to be evicted at once, so that these stay up: %s",
		announced, words.Count(len(set.Addresses), "member"), words.List(names, nodesNamed))
}

// LevelMessage describes a pool that is in sync, with its draining, retained and excluded nodes.
func LevelMessage(set membership.Set) string {
	text := "level with " + words.Count(len(set.Addresses), "node")
	if len(set.Addresses) == 0 {
		text = "level with no nodes"
	}
	if n := len(set.Draining); n > 0 {
		text += fmt.Sprintf(", %d of them Down", n)
	}
	if set.Held > 0 {
		text += fmt.Sprintf("; %d of them stay until the watches of the API server are in sync again", set.Held)
	}
	if len(set.Spared) > 0 {
		text += "; " + SparedMessage(set)
	}
	if kept := set.KeptOut(); len(kept) > 0 {
		text += "; kept out: " + words.Sentence(words.List(kept, leftOut), words.MaxMessage/4)
	}
	out := set.Missed(leftOut, words.MaxMessage/8, words.Sentence)
	if set.Homeless > 0 {
		out = append(out, words.Count(set.Homeless, "endpoint")+" without a node name")
	}
	if set.Unfit > 0 {
		out = append(out, words.Count(set.Unfit, "slice")+" without IP addresses (address type FQDN)")
	}
	if len(out) > 0 {
		text += "; left out: " + strings.Join(out, "; ")
	}
	return text
}
