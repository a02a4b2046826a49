// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostVisits is how many viewers are known at the same time: whoever has looked for the longest time
	// not gives way to another.
	mostVisits = 50
	// visitLasts is how long one goes without a token being shown again, and visitIdles how long while
	// nobody looks.
	visitLasts, visitIdles = 8 * time.Hour, time.Hour
	// mostSheets is of how many viewers what was gathered is in memory: whoever has looked for the longest time not has
	// it gathered again. That of a large cluster is megabytes.
	mostSheets = 10
	// sheetsLast is how long what was gathered for a viewer stays in memory once they look away.
	sheetsLast = 5 * time.Minute
)

// visit is a viewer with their token. What was gathered with it is theirs alone.
type visit struct {
	token       string
	api         client.Reader
	began, seen time.Time
	cache       *cache
}

// visits are those who were let in, by what they show: the value of a cookie, or their token's hash.
type visits struct {
	// slots are taken by whoever gathers: a few viewers at a time, and each viewer one thing.
	slots chan struct{}

	mu    sync.Mutex
	known map[string]*visit
}

func newVisits() *visits {
	return &visits{slots: make(chan struct{}, 4), known: map[string]*visit{}}
}

// keyOf is by which a token that comes with each request is known.
func keyOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "bearer " + hex.EncodeToString(sum[:])
}

// begin lets a viewer in. The key is what they show from now on; a random one if it is empty.
func (v *visits) begin(key, token string, api client.Reader, now time.Time) string {
	if key == "" {
		key = rand.Text()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(now)
	for len(v.known) >= mostVisits {
		last := ""
		for k, each := range v.known {
			if last == "" || each.seen.Before(v.known[last].seen) {
				last = k
			}
		}
		delete(v.known, last)
	}
	v.known[key] = &visit{token: token, api: api, began: now, seen: now, cache: sharing(v.slots)}
	return key
}

// of returns who shows a key: their token, a client with its rights, and what was gathered by it.
func (v *visits) of(key string, now time.Time) (visit, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(now)
	found, ok := v.known[key]
	if !ok {
		return visit{}, false
	}
	found.seen = now
	v.bound(found)
	return *found, true
}

// bound has what was gathered for few viewers be in memory, and one of them be this one.
func (v *visits) bound(one *visit) {
	for {
		var last *visit
		others := 0
		for _, each := range v.known {
			if each == one || each.cache.empty() {
				continue
			}
			if others++; last == nil || each.seen.Before(last.seen) {
				last = each
			}
		}
		if others < mostSheets {
			return
		}
		last.cache = sharing(v.slots)
	}
}

func (v *visits) end(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, key)
}

// tidy forgets what is over.
func (v *visits) tidy(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sweep(now)
}

func (v *visits) sweep(now time.Time) {
	for key, each := range v.known {
		switch idle := now.Sub(each.seen); {
		case idle >= visitIdles || now.Sub(each.began) >= visitLasts:
			delete(v.known, key)
		case idle >= sheetsLast:
			each.cache = sharing(v.slots)
		}
	}
}
