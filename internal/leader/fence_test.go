// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

const window = 10 * time.Second

var first = Epoch{Lease: "weir-system/weir", TransitionCount: 3, AcquireTime: 1}

// virtual is the clock of a synctest bubble.
func virtual() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// Writes are allowed from the acquisition on while renewals succeed.
func TestLeaderWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFence(window, virtual())
		if err := f.CheckWrite(); !errors.Is(err, ErrNotLeader) || f.EndReason() != nil {
			t.Errorf("before it leads: %v, over %v", err, f.EndReason())
		}
		time.Sleep(time.Hour) // others lead
		for range 100 {
			requested := f.ReadClock()
			time.Sleep(time.Second) // duration of the request
			f.RecordRenew(first, requested)
			time.Sleep(window - time.Second)
			if err := f.CheckWrite(); err != nil {
				t.Fatal(err)
			}
		}
		if in, leads := f.Epoch(); in != first || !leads {
			t.Errorf("it leads in %v: %t", in, leads)
		}
	})
}

// After a suspension the first write is rejected, although the next renewal succeeds.
func TestSuspendedLeaderWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFence(window, virtual())
		f.RecordRenew(first, f.ReadClock())
		time.Sleep(window + time.Nanosecond)
		if err := f.CheckWrite(); !errors.Is(err, ErrNotLeader) || !strings.Contains(err.Error(), "no renewal of its lease came through for 10s") {
			t.Error(err)
		}
		f.RecordRenew(first, f.ReadClock())
		if f.CheckWrite() == nil {
			t.Error("what was lost came back")
		}
	})
}

// A lapse is detected even if nothing was checked during the suspension.
func TestALapseIsSeenAtTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFence(window, virtual())
		f.RecordRenew(first, f.ReadClock())
		time.Sleep(window + time.Nanosecond)
		f.RecordRenew(first, f.ReadClock())
		if f.CheckWrite() == nil {
			t.Error("it writes on")
		}
	})
}

// Another process led and released the lease, and this process acquires it again.
func TestASecondEpochIsNotTheFirst(t *testing.T) {
	for name, second := range map[string]Epoch{
		"changed hands": {Lease: first.Lease, TransitionCount: 5, AcquireTime: 9},
		"made anew":     {Lease: first.Lease, TransitionCount: 3, AcquireTime: 9},
	} {
		f := NewFence(window, func() time.Duration { return 0 })
		f.RecordRenew(first, 0)
		f.RecordRenew(second, 0)
		if err := f.CheckWrite(); err == nil || !strings.Contains(err.Error(), "another had its lease") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnEndIsForGood(t *testing.T) {
	f := NewFence(window, func() time.Duration { return 0 })
	f.EndTerm(errors.New("not begun")) // as after reading another holder's lease
	f.RecordRenew(first, 0)
	if err := f.CheckWrite(); err != nil {
		t.Error(err)
	}
	f.EndTerm(errors.New("given back"))
	f.EndTerm(errors.New("later"))
	f.RecordRenew(first, 0)
	if err := f.CheckWrite(); err == nil || !strings.Contains(err.Error(), "given back") {
		t.Error(err)
	}
}

func TestWithoutAnElectionThereIsNoFence(t *testing.T) {
	var f *Fence
	body := io.NopCloser(strings.NewReader("x"))
	_, leads := f.Epoch()
	if f.CheckWrite() != nil || f.EndReason() != nil || leads || f.WrapBody(body) != body {
		t.Error("it refuses, or has an epoch")
	}
}

// After a suspension Watch reports the loss at its next check; explicit checks see it at once.
func TestWatchDetectsResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64 // of the machine, while the process's clock stood still
		clock := virtual()
		f := NewFence(window, func() time.Duration { return clock() + time.Duration(slept.Load()) })
		ctx, stop := context.WithCancel(t.Context())
		var lost error
		var at time.Duration
		ended := make(chan struct{})
		go func() {
			f.Watch(ctx, func(cause error) { lost, at = cause, clock() })
			close(ended)
		}()
		time.Sleep(time.Minute) // another leads
		f.RecordRenew(first, f.ReadClock())
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal(lost)
		default:
		}
		slept.Store(int64(20 * time.Second))
		<-ended
		if lost == nil || at > 61*time.Second+window/checksPerWindow {
			t.Errorf("told %v at %s", lost, at)
		}
		stop()
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		NewFence(window, virtual()).Watch(ctx, func(error) { t.Error("told") })
	})
}

// A request that is partly sent when leadership ends is truncated.
func TestABodyEndsWithTheLead(t *testing.T) {
	f := NewFence(window, func() time.Duration { return 0 })
	f.RecordRenew(first, 0)
	body := f.WrapBody(io.NopCloser(strings.NewReader("abcd")))
	part := make([]byte, 2)
	if n, err := body.Read(part); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	f.EndTerm(errors.New("over"))
	if n, err := body.Read(part); n != 0 || !errors.Is(err, ErrNotLeader) {
		t.Error(n, err)
	}
}

// In any order of renewals, checks and sleep, a write is allowed only within a window after a
// renewal of the epoch was requested, and never after a rejection.
func TestNothingLeavesOutsideOfAnEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var now, requested time.Duration
		f := NewFence(window, func() time.Duration { return now })
		epoch, begun, over := first, false, false
		t.Repeat(map[string]func(*rapid.T){
			"sleep": func(t *rapid.T) { now += time.Duration(rapid.IntRange(0, 12).Draw(t, "s")) * time.Second },
			"renew": func(t *rapid.T) {
				at := now
				now += time.Duration(rapid.IntRange(0, 12).Draw(t, "took")) * time.Second
				if rapid.IntRange(0, 9).Draw(t, "another") == 0 {
					over = over || begun
					epoch.TransitionCount++
				}
				f.RecordRenew(epoch, at)
				if over = over || begun && at-requested > window; !over {
					begun, requested = true, at
				}
			},
			"": func(t *rapid.T) {
				over = over || begun && now-requested > window
				if may := f.CheckWrite() == nil; may != (begun && !over) {
					t.Fatalf("may write is %t at %s: begun %t, over %t, asked at %s", may, now, begun, over, requested)
				}
			},
		})
	})
}

func TestEpochsInText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Epoch{Lease: rapid.StringMatching(`[a-z-]{1,8}/[a-z-]{1,8}`).Draw(t, "lease"), TransitionCount: rapid.IntRange(0, 1<<31).Draw(t, "n")}
		if got, ok := ParseEpoch(e.String()); !ok || got != e {
			t.Fatalf("%q is read as %v", e, got)
		}
	})
	for _, text := range []string{"", " ", "a/b", "a/b ", " 3", "a/b -1", "a/b 03", "a/b +3", "a/b 3 4", "a/b 99999999999999999999"} {
		if e, ok := ParseEpoch(text); ok {
			t.Errorf("%q is read as %v", text, e)
		}
	}
}

func TestBefore(t *testing.T) {
	at := func(lease string, n int) Epoch { return Epoch{Lease: lease, TransitionCount: n} }
	for _, tt := range []struct {
		earlier, later Epoch
		want           bool
	}{
		{at("a/b", 1), at("a/b", 2), true},
		{at("a/b", 2), at("a/b", 2), false},
		{at("a/b", 3), at("a/b", 2), false}, // recreated Lease: unknown
		{at("a/c", 1), at("a/b", 2), false}, // another election
		{Epoch{}, at("a/b", 2), false},
		{Epoch{}, Epoch{TransitionCount: 1}, false},
	} {
		if got := tt.earlier.Before(tt.later); got != tt.want {
			t.Errorf("%v before %v: %t", tt.earlier, tt.later, got)
		}
	}
}

func FuzzParseEpoch(f *testing.F) {
	f.Add("weir-system/weir-controller 7")
	f.Fuzz(func(t *testing.T, text string) {
		if e, ok := ParseEpoch(text); ok && e.String() != text {
			t.Errorf("%q is read as %q", text, e)
		}
	})
}
