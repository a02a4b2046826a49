// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const termLease = 15 * time.Minute

// apiLease is the Lease in the API server, for any number of holders.
type apiLease struct {
	mu     sync.Mutex
	holder string
	end    time.Time
	// takes is the duration of a request. down makes requests fail, before they take effect or, if
	// lost is set, after.
	takes time.Duration
	down  func(request string) bool
	lost  bool
	log   []string // "acquire weir", "refuse weir", "release weir"
}

var errDown = errors.New("the API server does not answer")

// as returns the Lease for the named holder.
func (a *apiLease) as(name string) *holder { return &holder{api: a, name: name} }

type holder struct {
	api  *apiLease
	name string
}

func (h *holder) Acquire(ctx context.Context) error {
	return h.request(ctx, "acquire", func() error {
		if h.api.holder != "" && h.api.holder != h.name && time.Now().Before(h.api.end) {
			h.api.log = append(h.api.log, "refuse "+h.name)
			return &HolderError{Lease: "the-lease", Holder: h.api.holder, Until: h.api.end}
		}
		h.api.holder, h.api.end = h.name, time.Now().Add(termLease)
		return nil
	})
}

func (h *holder) Release(ctx context.Context) error {
	return h.request(ctx, "release", func() error {
		if h.api.holder == h.name {
			h.api.holder = ""
		}
		return nil
	})
}

func (h *holder) request(ctx context.Context, request string, serve func() error) error {
	if ctx.Err() != nil {
		h.api.set(func() { h.api.log = append(h.api.log, request+" after the end of it") })
	}
	takes := time.Duration(0)
	h.api.set(func() { takes = h.api.takes })
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	h.api.mu.Lock()
	defer h.api.mu.Unlock()
	fails := h.api.down != nil && h.api.down(request)
	if fails && !h.api.lost {
		h.api.log = append(h.api.log, "fail "+request+" "+h.name)
		return errDown
	}
	if err := serve(); err != nil {
		return err
	}
	h.api.log = append(h.api.log, request+" "+h.name)
	if fails {
		return errDown
	}
	return nil
}

// sleeper is a holder on a machine that sleeps before it gets the response.
type sleeper struct {
	*holder
	sleeps time.Duration
}

func (s *sleeper) Acquire(ctx context.Context) error {
	err := s.holder.Acquire(ctx)
	time.Sleep(s.sleeps)
	return err
}

// set changes the Lease while requests may be running.
func (a *apiLease) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// story is one process, weir, with its Lease, in virtual time.
type story struct {
	*testing.T
	api   *apiLease
	weir  *SharedLease
	out   *bytes.Buffer // the log; read when everything is blocked
	start time.Time
}

func tell(t *testing.T, story_ func(s *story)) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{T: t, api: &apiLease{}, out: &bytes.Buffer{}, start: time.Now()}
		s.weir = NewSharedLease(s.api.as("weir"), termLease, slog.New(slog.NewTextHandler(s.out, nil)))
		story_(s)
	})
}

// lane is a worker inside.
type lane struct {
	valid func() bool
	leave func()
}

// enters requires that a worker can enter.
func (s *story) enters(shared *SharedLease) lane {
	s.Helper()
	valid, leave, err := shared.Enter(s.Context())
	if err != nil {
		s.Fatalf("+%s: %v", time.Since(s.start), err)
	}
	return lane{valid, leave}
}

// isRefused requires that a worker can't enter.
func (s *story) isRefused(shared *SharedLease, want string) {
	s.Helper()
	_, leave, err := shared.Enter(s.Context())
	if err == nil {
		leave()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		s.Fatalf("+%s: got %v, want a refusal that says %q", time.Since(s.start), err, want)
	}
}

// otherTakes takes the Lease as another controller.
func (s *story) otherTakes() {
	s.Helper()
	if err := s.api.as("other").Acquire(s.Context()); err != nil {
		s.Fatalf("+%s: the other: %v", time.Since(s.start), err)
	}
}

func (s *story) otherReleases() {
	s.Helper()
	if err := s.api.as("other").Release(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// requests compares the requests since the last check.
func (s *story) requests(want ...string) {
	s.Helper()
	synctest.Wait()
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	if got := strings.Join(s.api.log, ", "); got != strings.Join(want, ", ") {
		s.Errorf("+%s: requests: got %s; want %s", time.Since(s.start), got, strings.Join(want, ", "))
	}
	s.api.log = nil
}

// logs compares the log lines since the last check, each by a substring.
func (s *story) logs(want ...string) {
	s.Helper()
	synctest.Wait()
	lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	if s.out.Len() == 0 {
		lines = nil
	}
	s.out.Reset()
	if len(lines) != len(want) {
		s.Errorf("+%s: log: %q, want %d lines", time.Since(s.start), lines, len(want))
		return
	}
	for i, part := range want {
		if !strings.Contains(lines[i], part) {
			s.Errorf("+%s: log line %q, want %q in it", time.Since(s.start), lines[i], part)
		}
	}
}
