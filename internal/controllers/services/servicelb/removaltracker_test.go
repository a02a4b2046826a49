// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRemovalLimit(t *testing.T) {
	for _, tt := range []struct {
		n, total int
		want     bool
	}{
		{0, 0, false},
		{3, 3, false}, // three are never many
		{4, 4, true},
		{4, 19, true},
		{4, 20, false}, // exactly a fifth is allowed
		{5, 24, true},
		{200, 1000, false},
		{201, 1000, true},
	} {
		if got := ExceedsRemovalLimit(tt.n, tt.total); got != tt.want {
			t.Errorf("%d of %d: many is %t, want %t", tt.n, tt.total, got, tt.want)
		}
	}
}

// A changed setting removes the addresses of six of ten Services. The first waits for others, then
// all wait for confirmation. Confirming one does not release the others, for which the setting is
// reverted.
func TestRemovalsAboveTheLimitNeedConfirmation(t *testing.T) {
	start := time.Unix(1000, 0)
	at := start.Add
	var tally removalTracker
	name := func(i int) string { return fmt.Sprint("shop/web-", i) }
	tally.AddService(name(1), start)
	if v := tally.CheckService(name(1), 10, true, start); v.Allowed || !v.RetryAt.Equal(at(removalWait)) {
		t.Errorf("the first does not wait for the others: %+v", v)
	}
	for i := 2; i <= 6; i++ {
		tally.AddService(name(i), at(time.Second))
	}
	tally.AddService(name(1), at(3*time.Second)) // a repeated call does not extend the wait
	if v := tally.CheckService(name(1), 10, false, at(5*time.Second)); v.Allowed || !v.RetryAt.Equal(at(6*time.Second)) {
		t.Errorf("not all Services were looked at: %+v", v)
	}
	for i := 1; i <= 6; i++ {
		if v := tally.CheckService(name(i), 10, true, at(6*time.Second)); v.Allowed || !v.RetryAt.IsZero() || v.PendingCount != 6 {
			t.Errorf("%s: %+v, want that a person is waited for", name(i), v)
		}
	}
	for i := 1; i <= 4; i++ {
		tally.RemoveService(name(i))
	}
	if v := tally.CheckService(name(5), 10, true, at(time.Hour)); v.Allowed || v.PendingCount != 2 {
		t.Errorf("with the others it was let go: %+v", v)
	}
	tally.RemoveService(name(5))
	tally.AddService(name(5), at(2*time.Hour))
	if v := tally.CheckService(name(5), 10, true, at(3*time.Hour)); !v.Allowed {
		t.Errorf("later, for another reason: %+v", v)
	}
}

// Few are only delayed briefly.
func TestRemovalsBelowTheLimit(t *testing.T) {
	now := time.Unix(1000, 0)
	var small, large removalTracker
	small.AddService("a/a", now)
	if v := small.CheckService("a/a", 3, false, now); !v.Allowed {
		t.Errorf("three Services alone: %+v", v)
	}
	large.AddService("a/a", now)
	if v := large.CheckService("a/a", 100, true, now.Add(removalWait)); !v.Allowed {
		t.Errorf("one of a hundred: %+v", v)
	}
	for i := range 50 {
		large.AddService(fmt.Sprint("b/", i), now)
	}
	if v := large.CheckService("a/a", 100, true, now.Add(time.Hour)); !v.Allowed {
		t.Errorf("one that was let go, and is half gone: %+v", v)
	}
	if v := large.CheckService("b/b", 100, false, now); !v.Allowed {
		t.Errorf("one that loses nothing: %+v", v)
	}
}

// Whatever the order: within a minute at most three, or a fifth, are removed unconfirmed.
func TestLawRemovalsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(4, 40).Draw(t, "all")
		var tally removalTracker
		now := time.Unix(1000, 0)
		went := map[string]time.Time{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			service := fmt.Sprint(rapid.IntRange(1, total).Draw(t, "service"))
			switch rapid.SampledFrom([]string{"loses", "judge", "judge", "stays"}).Draw(t, "step") {
			case "loses":
				tally.AddService(service, now)
			case "stays":
				tally.RemoveService(service)
			case "judge":
				tally.AddService(service, now)
				if tally.CheckService(service, total, true, now).Allowed {
					went[service] = now
					tally.RemoveService(service)
				}
			}
			n := 0
			for _, at := range went {
				if now.Sub(at) < removalInterval {
					n++
				}
			}
			if ExceedsRemovalLimit(n, total) {
				t.Fatalf("%d of %d went within a minute", n, total)
			}
		}
	})
}
