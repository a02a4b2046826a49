// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"
)

// PoolEntry is one IP address of a backend pool and its origin, which Azure does not expose.
type PoolEntry struct {
	// Pool is the ID of the pool.
	Pool, Name string
	IP         netip.Addr
	// AddedBy is the Caller that first added the address, or empty for Put and Restore.
	AddedBy string
	Down    bool
	// DownBy is the Caller that set it Down.
	DownBy string
}

// CallerID returns a digest of a bearer token.
func CallerID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// Entries returns the IP addresses of a backend pool, or of all if empty.
func (e *Emulator) Entries(of string) []PoolEntry {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
	var entries []PoolEntry
	for _, agg := range e.sortedAggregates() {
		for _, pool := range objectList(propertyFields(agg.body), pools) {
			id := agg.id.withChild(poolKind, stringField(pool, "name")).String()
			if of != "" && !sameName(id, of) {
				continue
			}
			for _, a := range objectList(propertyFields(pool), addresses) {
				ip, err := netip.ParseAddr(stringField(propertyFields(a), "ipAddress"))
				if err != nil {
					continue // a network interface
				}
				by, _ := a[originKey].(addressOrigin)
				entries = append(entries, PoolEntry{Pool: id, Name: stringField(a, "name"), IP: ip, AddedBy: by.addedBy, Down: isDown(a), DownBy: by.downBy})
			}
		}
	}
	return entries
}

// addressOrigin is stored with the address, so reverting a write reverts it too. It is never rendered.
type addressOrigin struct{ addedBy, downBy string }

// originKey cannot collide with an Azure property.
const originKey = "\x00origin"

func isDown(address fields) bool {
	return strings.EqualFold(stringField(propertyFields(address), adminState), "Down")
}

// withOrigins retains the origins of existing addresses.
func withOrigins(before, after fields, by string) fields {
	list := objectList(propertyFields(after), pools)
	if len(list) == 0 {
		return after
	}
	old := newNameIndex(objectList(propertyFields(before), pools))
	for i, pool := range list {
		entries := objectList(propertyFields(pool), addresses)
		if len(entries) == 0 {
			continue
		}
		var known []fields
		if before, found := lookUpName(old, stringField(pool, "name")); found {
			known = objectList(propertyFields(before), addresses)
		}
		list[i] = withField(pool, "properties", withField(propertyFields(pool), addresses, toArray(withEntryOrigins(known, entries, by))))
	}
	return withField(after, "properties", withField(propertyFields(after), pools, toArray(list)))
}

func withEntryOrigins(known, list []fields, by string) []fields {
	before := map[string]fields{}
	for _, k := range known {
		before[stringField(propertyFields(k), "ipAddress")] = k
	}
	for i, a := range list {
		now := addressOrigin{addedBy: by}
		k, stays := before[stringField(propertyFields(a), "ipAddress")]
		before, _ := k[originKey].(addressOrigin)
		if stays {
			now.addedBy = before.addedBy
		}
		switch {
		case isDown(a) && stays && isDown(k):
			now.downBy = before.downBy
		case isDown(a):
			now.downBy = by
		}
		list[i] = withField(a, originKey, now)
	}
	return list
}
