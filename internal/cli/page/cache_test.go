// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asked counts gatherings, in total and concurrent.
type asked struct {
	mu              sync.Mutex
	all, now, worst int
	takes           time.Duration
	err             error
}

func (a *asked) gather(ctx context.Context) (int, error) {
	a.mu.Lock()
	a.all++
	a.now++
	a.worst = max(a.worst, a.now)
	n := a.all
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.now--
		a.mu.Unlock()
	}()
	select {
	case <-time.After(a.takes):
		return n, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Concurrent viewers share one gathering, and its result for a moment.
func TestConcurrentViewersShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := newCache(), &asked{takes: 50 * time.Millisecond}
		var viewers sync.WaitGroup
		for i := range 30 {
			viewers.Go(func() {
				if _, err := getCached(t.Context(), s, fmt.Sprint("sheet ", i%3), a.gather); err != nil {
					t.Error(err)
				}
			})
		}
		viewers.Wait()
		if a.all != 3 || a.worst != 1 {
			t.Errorf("%d gathered, %d at the same time", a.all, a.worst)
		}
		time.Sleep(time.Hour) // no viewer
		synctest.Wait()
		if a.all != 3 {
			t.Errorf("%d gathered while nobody looked", a.all)
		}
		single, err := getCached(t.Context(), s, "sheet 0", a.gather)
		if err != nil || single != 4 || len(s.entries) != 1 {
			t.Errorf("%d, %v, %d are kept", single, err, len(s.entries))
		}
	})
}

// A result is cached for one second, or ten times as long as it took to gather.
func TestCacheTTL(t *testing.T) {
	for _, tt := range []struct{ takes, kept time.Duration }{{time.Millisecond, time.Second}, {3 * time.Second, 30 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s, a := newCache(), &asked{takes: tt.takes}
			look := func(want int) {
				t.Helper()
				if n, err := getCached(t.Context(), s, "front", a.gather); err != nil || n != want {
					t.Errorf("%d, %v, want %d", n, err, want)
				}
			}
			look(1)
			time.Sleep(tt.kept - time.Millisecond)
			look(1)
			time.Sleep(time.Millisecond)
			look(2)
		})
	}
}

// A viewer who leaves does not cancel a shared gathering; errors reach all viewers; an unresponsive API
// server times out; the number of entries is limited.
func TestFailedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := newCache(), &asked{takes: time.Second}
		leaves, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if _, err := getCached(leaves, s, "front", a.gather); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n, err := getCached(t.Context(), s, "front", a.gather); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		bad := &asked{err: errors.New("no rights")}
		for range 2 {
			if _, err := getCached(t.Context(), s, "other", bad.gather); !errors.Is(err, bad.err) || bad.all != 1 {
				t.Errorf("%v, %d gathered", err, bad.all)
			}
		}
		silent := &asked{takes: time.Hour}
		if _, err := getCached(t.Context(), s, "silent", silent.gather); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		for i := range maxCacheEntries {
			go func() { _, _ = getCached(t.Context(), s, fmt.Sprint(i), a.gather) }()
		}
		synctest.Wait()
		if _, err := getCached(t.Context(), s, "one more", a.gather); !errors.Is(err, errBusy) {
			t.Error(err)
		}
		time.Sleep(2 * maxCacheEntries * time.Second)
	})
}
