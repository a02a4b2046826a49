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

func (p PoolUser) hasPool(name string) bool {
	return slices.ContainsFunc(p.PoolNames, func(n string) bool { return strings.EqualFold(n, name) })
}

// ChoosePoolName returns the name of a Service's dedicated pool: the default one, or a hashed one if another
// Service has the same default name. Existing names are retained; otherwise the oldest Service gets the default one.
func ChoosePoolName(defaultName string, c PoolUser, rivals []PoolUser) string {
	hashed := HashedPoolName(defaultName, c.Key)
	switch {
	case c.hasPool(hashed):
		return hashed
	case c.hasPool(defaultName):
		return defaultName
	}
	for _, r := range rivals {
		if r.hasPool(defaultName) || !r.hasPool(HashedPoolName(defaultName, r.Key)) && isOlder(r, c) {
			return hashed
		}
	}
	return defaultName
}

func isOlder(a, b PoolUser) bool {
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.Key < b.Key
}

// HashedPoolName returns a unique pool name for a Service with an ambiguous default name.
func HashedPoolName(defaultName, key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	suffix := fmt.Sprintf("-%08x", h.Sum32())
	return defaultName[:min(len(defaultName), maxNameLength-len(suffix))] + suffix
}
