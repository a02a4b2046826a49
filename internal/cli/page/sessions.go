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
	// maxSessions limits the sessions; the least recently used one is evicted.
	maxSessions = 50
	// sessionTTL and sessionIdleTimeout limit the total and the idle lifetime of a session.
	sessionTTL, sessionIdleTimeout = 8 * time.Hour, time.Hour
	// maxCachedSessions limits the sessions with cached pages, which take megabytes in a large cluster. The least
	// recently used cache is dropped.
	maxCachedSessions = 10
	sessionCacheTTL   = 5 * time.Minute
)

type session struct {
	token                 string
	api                   client.Reader
	startedAt, lastUsedAt time.Time
	cache                 *pageCache
}

// sessionStore holds the sessions by cookie value or token hash.
type sessionStore struct {
	// slots limits concurrent gathering over all sessions.
	slots chan struct{}

	mu       sync.Mutex
	sessions map[string]*session
}

func newSessionStore() *sessionStore {
	return &sessionStore{slots: make(chan struct{}, 4), sessions: map[string]*session{}}
}

func tokenKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "bearer " + hex.EncodeToString(sum[:])
}

// startSession returns a random key if key is empty.
func (store *sessionStore) startSession(key, token string, api client.Reader, now time.Time) string {
	if key == "" {
		key = rand.Text()
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	store.removeExpiredLocked(now)
	for len(store.sessions) >= maxSessions {
		last := ""
		for k, each := range store.sessions {
			if last == "" || each.lastUsedAt.Before(store.sessions[last].lastUsedAt) {
				last = k
			}
		}
		delete(store.sessions, last)
	}
	store.sessions[key] = &session{token: token, api: api, startedAt: now, lastUsedAt: now, cache: newSharedCache(store.slots)}
	return key
}

func (store *sessionStore) findSession(key string, now time.Time) (session, bool) {
	store.mu.Lock()
	defer store.mu.Unlock()
	store.removeExpiredLocked(now)
	found, ok := store.sessions[key]
	if !ok {
		return session{}, false
	}
	found.lastUsedAt = now
	store.limitCaches(found)
	return *found, true
}

// limitCaches drops least recently used caches, keeping room for one.
func (store *sessionStore) limitCaches(s *session) {
	for {
		var last *session
		others := 0
		for _, each := range store.sessions {
			if each == s || each.cache.isEmpty() {
				continue
			}
			if others++; last == nil || each.lastUsedAt.Before(last.lastUsedAt) {
				last = each
			}
		}
		if others < maxCachedSessions {
			return
		}
		last.cache = newSharedCache(store.slots)
	}
}

func (store *sessionStore) endSession(key string) {
	store.mu.Lock()
	defer store.mu.Unlock()
	delete(store.sessions, key)
}

func (store *sessionStore) removeExpired(now time.Time) {
	store.mu.Lock()
	defer store.mu.Unlock()
	store.removeExpiredLocked(now)
}

func (store *sessionStore) removeExpiredLocked(now time.Time) {
	for key, each := range store.sessions {
		switch idle := now.Sub(each.lastUsedAt); {
		case idle >= sessionIdleTimeout || now.Sub(each.startedAt) >= sessionTTL:
			delete(store.sessions, key)
		case idle >= sessionCacheTTL:
			each.cache = newSharedCache(store.slots)
		}
	}
}
