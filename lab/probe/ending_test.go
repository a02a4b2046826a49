// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/probe"
)

// runCleanup runs the cleanup of --clean.
func (c *cloud) runCleanup(ctx context.Context) error {
	azure := c.client(nil)
	found, err := probe.FindGroups(ctx, azure, c.settings().Subscription)
	if err != nil {
		return err
	}
	return probe.RemoveGroups(ctx, azure, c.settings().Subscription, found, c.say)
}

// killedTransport forwards requests until a given number, which is forwarded or not and never answered, as if
// the process was killed.
type killedTransport struct {
	azure.Transport
	mu           sync.Mutex
	number       int
	arrives      bool
	dead, buried chan struct{}
}

func (k *killedTransport) Do(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	k.number--
	remaining := k.number
	k.mu.Unlock()
	if remaining > 0 {
		return k.Transport.Do(r)
	}
	if remaining == 0 {
		if k.arrives {
			if resp, err := k.Transport.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		}
		close(k.dead)
	}
	<-k.buried
	return nil, errors.New("nobody is there to hear it")
}

// runKilled runs a probe that is killed at a request; false if it ended before.
func (c *cloud) runKilled(t *testing.T, number int, arrives bool, after func()) bool {
	u := &killedTransport{Transport: c.emu.Transport(), number: number, arrives: arrives, dead: make(chan struct{}), buried: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.run(ctx, u)
	}()
	defer func() {
		stop()
		close(u.buried)
		<-ended
	}()
	select {
	case <-u.dead:
		after()
		return true
	case <-ended:
		return false
	}
}

// If killed at any request or poll, a run leaves nothing that --clean does not delete.
func TestKilledAtEachCall(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, arrives := range []bool{true, false} {
		for number, more := 1, true; more; number++ {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t, armemu.Options{Seed: 1, LatencyScale: 0.1})
				more = c.runKilled(t, number, arrives, func() {
					if err := c.runCleanup(t.Context()); err != nil {
						t.Errorf("call %d: %v", number, err)
					}
					if remaining := c.remainingResources(); remaining != "" {
						t.Errorf("call %d, arrives %t: left behind: %s", number, arrives, remaining)
					}
				})
			})
			if number > 1000 || t.Failed() {
				t.Fatalf("stopped at call %d", number)
			}
		}
	}
}

// If stopped at any request, a run deletes its resources before it ends.
func TestStoppedAtEachCall(t *testing.T) {
	for number, more := 1, true; more; number++ {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(t, armemu.Options{Seed: 1, LatencyScale: 0.1})
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			calls := 0
			report, err := c.run(ctx, transport(func(r *http.Request) (*http.Response, error) {
				if calls++; calls == number {
					stop(errors.New("Ctrl-C"))
				}
				return c.emu.Transport().Do(r)
			}))
			more = calls >= number
			if stopped := ctx.Err() != nil; stopped && err != nil && !strings.Contains(err.Error(), "Ctrl-C") {
				t.Errorf("call %d: %v", number, err)
			}
			if remaining := c.remainingResources(); remaining != "" {
				t.Errorf("call %d: left behind: %s", number, remaining)
			}
			if err != nil && report.CountOpen() == 0 {
				t.Errorf("call %d: nothing is open, and yet %v", number, err)
			}
		})
	}
}

// A group that cannot be deleted is reported, and --clean deletes it later.
func TestADeletionThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, armemu.Options{Seed: 1})
		if err := c.emu.SetFaults(`rules: [{match: {method: DELETE, path: "resourceGroups/*"}, action: {status: 409, code: ScopeLocked, message: "The scope is locked."}}]`); err != nil {
			t.Fatal(err)
		}
		_, err := c.run(t.Context(), nil)
		remaining, ok := errors.AsType[*probe.OrphanError](err)
		if !ok || remaining.Group != "weir-probe-abc123" || !strings.Contains(err.Error(), "409 ScopeLocked: The scope is locked.") {
			t.Errorf("it says %v", err)
		}
		if err := c.emu.SetFaults(""); err != nil {
			t.Fatal(err)
		}
		if err := c.runCleanup(t.Context()); err != nil || c.remainingResources() != "" {
			t.Errorf("%v, left behind: %s", err, c.remainingResources())
		}
	})
}

// Only groups with a probe's name and tag are deleted, even if a run uses the name of a foreign
// group.
func TestGroupsOfOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, armemu.Options{Seed: 1})
		for name, tag := range map[string]string{
			"weir-probe-mine": "", "weir-probe-other": "weir-probe-mine", "production": "production", "weir-probe-": "weir-probe-",
		} {
			tags := ""
			if tag != "" {
				tags = fmt.Sprintf(`, "tags": {"weir-probe": %q}`, tag)
			}
			if err := c.emu.Put("/subscriptions/sub-canary-1/resourceGroups/"+name, []byte(`{"location": "westeurope"`+tags+`}`)); err != nil {
				t.Fatal(err)
			}
		}
		before := c.remainingResources()
		if err := c.runCleanup(t.Context()); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"weir-probe-mine", "weir-probe-other", "production"} {
			err := probe.RemoveGroups(t.Context(), c.client(nil), "sub-canary-1", []probe.OrphanGroup{{Name: name}}, c.say)
			if err == nil || !strings.Contains(err.Error(), "does not say that a probe made it") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := c.emu.Put("/subscriptions/sub-canary-1/resourceGroups/weir-probe-abc123", []byte(`{"location": "westeurope"}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "must not exist") {
			t.Errorf("it says %v", err)
		}
		if after := c.remainingResources(); len(after) < len(before) || !strings.Contains(after, "weir-probe-abc123") {
			t.Errorf("left are %s", after)
		}
	})
}

// stoppingTransport forwards all requests. The creation of the group stops the run and arrives later;
// never, if negative.
func (c *cloud) stoppingTransport(stop context.CancelCauseFunc, later time.Duration) transport {
	return func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/resourceGroups/weir-probe-abc123") {
			return c.emu.Transport().Do(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		arrives := r.Clone(context.WithoutCancel(r.Context()))
		arrives.Body = io.NopCloser(bytes.NewReader(body))
		stop(errors.New("Ctrl-C"))
		if later >= 0 {
			time.AfterFunc(later, func() {
				if resp, err := c.emu.Transport().Do(arrives); err == nil {
					_ = resp.Body.Close()
				}
			})
		}
		return nil, context.Cause(r.Context())
	}
}

// If stopped during the creation of its group, a run waits for the group despite a 404 and deletes
// it, or reports it.
func TestStoppedWhileTheGroupIsMade(t *testing.T) {
	for _, row := range []struct {
		name   string
		later  time.Duration
		unseen bool // the run reports the group
		cleans bool // --clean finds it later
	}{
		{"it arrives at once", 0, false, false},
		{"it arrives late", 45 * time.Second, false, false},
		{"it arrives when nobody looks any more", 5 * time.Minute, true, true},
		{"it never arrives", -1, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(t, armemu.Options{Seed: 1, LatencyScale: 0.1})
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			_, err := c.run(ctx, c.stoppingTransport(stop, row.later))
			if err == nil || !strings.Contains(err.Error(), "stopped: Ctrl-C") {
				t.Errorf("%s: %v", row.name, err)
			}
			remaining, ok := errors.AsType[*probe.OrphanError](err)
			if ok != row.unseen || ok && (!remaining.Uncertain || remaining.Group != "weir-probe-abc123" || !strings.Contains(err.Error(), "may come to be there yet")) {
				t.Errorf("%s: %v", row.name, err)
			}
			if want := slices.Contains(c.said, "deleted"); want == row.unseen {
				t.Errorf("%s: it says %q", row.name, c.said)
			}
			time.Sleep(10 * time.Minute)
			if row.cleans {
				if c.remainingResources() == "" {
					t.Errorf("%s: nothing has arrived", row.name)
				}
				if err := c.runCleanup(t.Context()); err != nil {
					t.Errorf("%s: %v", row.name, err)
				}
			}
			if remaining := c.remainingResources(); remaining != "" {
				t.Errorf("%s: left behind: %s", row.name, remaining)
			}
		})
	}
}

// After a proxy error the group may still appear; after a rejection the run does not wait.
func TestTheGroupIsRefused(t *testing.T) {
	for _, row := range []struct {
		status int
		unseen bool
	}{{503, true}, {403, false}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(t, armemu.Options{Seed: 1})
			if err := c.emu.SetFaults(fmt.Sprintf(`rules: [{match: {method: PUT, path: "resourceGroups/*"}, action: {status: %d, code: Broken}}]`, row.status)); err != nil {
				t.Fatal(err)
			}
			_, err := c.run(t.Context(), nil)
			remaining, ok := errors.AsType[*probe.OrphanError](err)
			if err == nil || ok != row.unseen || ok && !remaining.Uncertain {
				t.Errorf("%d: %v", row.status, err)
			}
		})
	}
}
