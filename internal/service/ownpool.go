// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Contender is a Service that may have a dedicated pool.
type Contender struct {
	// Key is namespace/name.
	Key     string
	Created time.Time
	// Has are the names of its existing dedicated pools, as far as known.
	Has []string
}

func (c Contender) has(name string) bool {
	return slices.ContainsFunc(c.Has, func(n string) bool { return strings.EqualFold(n, name) })
}

// PoolAmong returns the name of a Service's dedicated pool: the usual one, or a hashed one if another Service
// has the same usual name. Existing names are retained; otherwise the oldest Service gets the usual one.
func PoolAmong(usual string, c Contender, rivals []Contender) string {
	hashed := HashedPool(usual, c.Key)
	switch {
	case c.has(hashed):
		return hashed
	case c.has(usual):
		return usual
	}
	for _, r := range rivals {
		if r.has(usual) || !r.has(HashedPool(usual, r.Key)) && older(r, c) {
			return hashed
		}
	}
	return usual
}

func older(a, b Contender) bool {
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.Key < b.Key
}

// HashedPool returns a unique pool name for a Service with an ambiguous usual name.
func HashedPool(usual, key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	suffix := fmt.Sprintf("-%08x", h.Sum32())
	return usual[:min(len(usual), mostName-len(suffix))] + suffix
}
