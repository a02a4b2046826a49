// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// PoolUser is a Service that may have a dedicated pool.
type PoolUser struct {
	// Key is namespace/name.
	Key     string
	Created time.Time
	// PoolNames are the names of its existing dedicated pools, as far as known.
	PoolNames []string
}

func (c PoolUser) hasPool(name string) bool {
	return slices.ContainsFunc(c.PoolNames, func(n string) bool { return strings.EqualFold(n, name) })
}

// ChoosePoolName returns the name of a Service's dedicated pool: the usual one, or a hashed one if another Service
// has the same usual name. Existing names are retained; otherwise the oldest Service gets the usual one.
func ChoosePoolName(usual string, c PoolUser, rivals []PoolUser) string {
	hashed := HashedPoolName(usual, c.Key)
	switch {
	case c.hasPool(hashed):
		return hashed
	case c.hasPool(usual):
		return usual
	}
	for _, r := range rivals {
		if r.hasPool(usual) || !r.hasPool(HashedPoolName(usual, r.Key)) && isOlder(r, c) {
			return hashed
		}
	}
	return usual
}

func isOlder(a, b PoolUser) bool {
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.Key < b.Key
}

// HashedPoolName returns a unique pool name for a Service with an ambiguous usual name.
func HashedPoolName(usual, key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	suffix := fmt.Sprintf("-%08x", h.Sum32())
	return usual[:min(len(usual), maxNameLength-len(suffix))] + suffix
}
