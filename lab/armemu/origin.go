// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"
)

// An Entry is one IP address of a backend pool, and who put it there. Azure tells nobody; it
// is the emulator's own record, for tests that must not take a client's word for it.
type Entry struct {
	// Pool is the id of the pool.
	Pool, Name string
	IP         netip.Addr
	// PutBy is who put the address into the pool: the Caller of the request, or empty for Put
	// and Restore. Whoever repeats what is there puts nothing.
	PutBy string
	Down  bool
	// DownBy is who set it Down, in the same words.
	DownBy string
}

// Caller is how a bearer token is named where it must not be seen.
func Caller(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// Entries returns the IP addresses of the backend pool with this id, or, if that is empty, of
// all backend pools, in the order of their ids.
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

// origin is who put an address, and who set it Down. It is stored with the address, so that
// a write that is taken back takes it along, and is never rendered.
type origin struct{ put, down string }

// originKey is no name that Azure has.
const originKey = "\x00origin"

func isDown(address fields) bool {
	return strings.EqualFold(text(properties(address), adminState), "Down")
}

// signed returns a root body with the origins of its addresses, after a write of by: those
// that were there before keep theirs.
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
