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
	// mostVisits limits the sessions; the least recently used one is evicted.
	mostVisits = 50
	// visitLasts and visitIdles limit the total and the idle lifetime of a session.
	visitLasts, visitIdles = 8 * time.Hour, time.Hour
	// mostSheets limits the sessions with cached pages, which take megabytes in a large cluster. The least
	// recently used cache is dropped.
	mostSheets = 10
	sheetsLast = 5 * time.Minute
)

type visit struct {
	token       string
	api         client.Reader
	began, seen time.Time
	cache       *cache
}

// visits holds the sessions by cookie value or token hash.
type visits struct {
	// slots limits concurrent gathering over all sessions.
	slots chan struct{}

	mu    sync.Mutex
	known map[string]*visit
}

func newVisits() *visits {
	return &visits{slots: make(chan struct{}, 4), known: map[string]*visit{}}
}

func keyOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "bearer " + hex.EncodeToString(sum[:])
}

// begin returns a random key if key is empty.
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

// bound drops least recently used caches, keeping room for one.
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
