// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"
)

// Entry is one IP address of a backend pool and its origin. Azure does not expose the origin; tests
// use it to verify clients.
type Entry struct {
	// Pool is the ID of the pool.
	Pool, Name string
	IP         netip.Addr
	// PutBy is the Caller that added the address, or empty for Put and Restore. Repeating an
	// existing address adds nothing.
	PutBy string
	Down  bool
	// DownBy is the Caller that set it Down.
	DownBy string
}

// Caller returns a digest that identifies a bearer token without exposing it.
func Caller(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// Entries returns the IP addresses of the backend pool with this ID, or of all backend pools if
// empty, sorted by pool ID.
func (e *Emulator) Entries(of string) []Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle(time.Now())
	var all []Entry
	for _, agg := range e.sorted() {
		for _, pool := range objects(properties(agg.body), pools) {
			id := agg.id.withChild(poolKind, text(pool, "name")).String()
			if of != "" && !sameName(id, of) {
				continue
			}
			for _, a := range objects(properties(pool), addresses) {
				ip, err := netip.ParseAddr(text(properties(a), "ipAddress"))
				if err != nil {
					continue // a network interface
				}
				by, _ := a[originKey].(origin)
				all = append(all, Entry{Pool: id, Name: text(a, "name"), IP: ip, PutBy: by.put, Down: isDown(a), DownBy: by.down})
			}
		}
	}
	return all
}

// origin records which caller added an address and which set it Down. It is stored with the
// address, so reverting a write reverts it too, and is never rendered.
type origin struct{ put, down string }

// originKey cannot collide with an Azure property.
const originKey = "\x00origin"

func isDown(address fields) bool {
	return strings.EqualFold(text(properties(address), adminState), "Down")
}

// signed returns a root body with the origins of its addresses after a write by this caller:
// existing addresses keep theirs.
func signed(before, after fields, by string) fields {
	list := objects(properties(after), pools)
	if len(list) == 0 {
		return after
	}
	old := objects(properties(before), pools)
	for i, pool := range list {
		entries := objects(properties(pool), addresses)
		if len(entries) == 0 {
			continue
		}
		var known []fields
		if at := indexByName(old, text(pool, "name")); at >= 0 {
			known = objects(properties(old[at]), addresses)
		}
		list[i] = with(pool, "properties", with(properties(pool), addresses, array(signedEntries(known, entries, by))))
	}
	return with(after, "properties", with(properties(after), pools, array(list)))
}

func signedEntries(known, list []fields, by string) []fields {
	was := map[string]fields{}
	for _, k := range known {
		was[text(properties(k), "ipAddress")] = k
	}
	for i, a := range list {
		now := origin{put: by}
		k, stays := was[text(properties(a), "ipAddress")]
		before, _ := k[originKey].(origin)
		if stays {
			now.put = before.put
		}
		switch {
		case isDown(a) && stays && isDown(k):
			now.down = before.down
		case isDown(a):
			now.down = by
		}
		list[i] = with(a, originKey, now)
	}
	return list
}
