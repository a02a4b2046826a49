// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Contender is a Service that may have a pool for itself.
type Contender struct {
	// Key is namespace/name.
	Key     string
	Created time.Time
	// Has are the names of pools that it has for itself, as far as anything shows.
	Has []string
}

// has reports whether a contender has the pool of a name.
func (c Contender) has(name string) bool {
	return slices.ContainsFunc(c.Has, func(n string) bool { return strings.EqualFold(n, name) })
}

// PoolAmong returns the name of the pool that a Service has for itself: the usual one, or one
// with a hash if that is another's, whose names make the same. Who has a name keeps it; of
// those who have none the older gets the usual one.
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

// older orders contenders by when they were created, then by name.
func older(a, b Contender) bool {
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.Key < b.Key
}

// HashedPool is the name of a pool that keeps two Services apart whose names make the same.
func HashedPool(usual, key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	suffix := fmt.Sprintf("-%08x", h.Sum32())
	return usual[:min(len(usual), mostName-len(suffix))] + suffix
}
