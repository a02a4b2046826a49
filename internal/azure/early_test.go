// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
)

// withEtag returns a reply with another etag.
func withEtag(etag string, r reply) reply {
	r.body = strings.ReplaceAll(r.body, `W/\"e1\"`, `W/\"`+etag+`\"`)
	return r
}

// acceptedWrite10 is an accepted write with a Retry-After of ten seconds.
var acceptedWrite10 = withEtag("e2", slower(accepted, "10"))

// A write has finished as soon as its pool shows the result; similar responses do not end it.
func TestAPoolShowsTheEndOfItsWrite(t *testing.T) {
	running, over := withEtag("e2", reply{status: 200, body: poolBody("Updating", "10.0.0.4")}), withEtag("e3", shown)
	polled := "0s PUT, 2s GET, 5s GET, 10s poll, 10s GET"
	tests := []struct {
		name     string
		answers  []reply
		timeline string
	}{
		{"over at the first look", []reply{acceptedWrite10, over}, "0s PUT, 2s GET"},
		{"over at the second", []reply{acceptedWrite10, running, over}, "0s PUT, 2s GET, 5s GET"},
		{"runs for longer", []reply{acceptedWrite10, running, running, done, over}, polled},
		{"a read older than the write", []reply{acceptedWrite10, shown, shown, done, over}, polled},
		{"a read of its acceptance", []reply{acceptedWrite10, withEtag("e2", shown), withEtag("e2", shown), done, over}, polled},
		{"another owner's members", []reply{acceptedWrite10, withEtag("e3", reply{status: 200, body: poolBody("Succeeded", "10.0.0.9")}), running, done, over}, polled},
		{"another owner's admin state", []reply{acceptedWrite10, withEtag("e3", reply{status: 200, body: strings.Replace(shown.body, "None", "Down", 1)}), running, done, over}, polled},
		{"without an etag", []reply{acceptedWrite10, reply{status: 200, body: strings.Replace(shown.body, "etag", "tag", 1)}, running, done, over}, polled},
		{"the look finds it gone", []reply{acceptedWrite10, {status: 404}, running, done, over}, polled},
		{"the look has no answer", []reply{acceptedWrite10, {status: 409}, {err: errors.New("reset")}, {err: errors.New("reset")}, {err: errors.New("reset")}, {err: errors.New("reset")}, done, over}, ""},
		{"polled soon", []reply{withEtag("e2", slower(accepted, "2")), done, over}, "0s PUT, 2s poll, 2s GET"},
		{"polled in between", []reply{withEtag("e2", slower(accepted, "4")), running, done, over}, "0s PUT, 2s GET, 4s poll, 4s GET"},
		{"accepted without an etag", []reply{{status: 201, body: strings.Replace(accepted.body, "etag", "tag", 1), header: slower(accepted, "10").header}, done, over}, "0s PUT, 10s poll, 10s GET"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := readPool(t)
				wire, start := &fakeARM{answer: replySequence(tt.answers...)}, time.Now()
				got, err := newClient(t, wire).PutPool(t.Context(), pool)
				if timeline := wire.timeline(start); tt.timeline != "" && timeline != tt.timeline {
					t.Errorf("on the wire:\n got %s\nwant %s", timeline, tt.timeline)
				}
				if err != nil || len(got.Addresses) != 1 || got.Etag != `W/"e3"` {
					t.Errorf("got %+v, %v", got, err)
				}
			})
		})
	}
}

// The operation's result counts whatever the pool showed before, and a failed early read causes no
// delay.
func TestEarlyReadDoesNotDecideTheResult(t *testing.T) {
	failed := reply{status: 200, body: `{"status":"Failed",` + strings.TrimPrefix(errorBody("InternalServerError", "It failed."), "{")}
	synctest.Test(t, func(t *testing.T) {
		pool := readPool(t)
		wire, start := &fakeARM{answer: replySequence(acceptedWrite10, withEtag("e3", reply{status: 200, body: poolBody("Failed", "10.0.0.4")}), withEtag("e3", reply{status: 200, body: poolBody("Failed", "10.0.0.4")}), failed)}, time.Now()
		_, err := newClient(t, wire).PutPool(t.Context(), pool)
		if wantFault(t, err, armerror.Terminal, "InternalServerError"); wire.timeline(start) != "0s PUT, 2s GET, 5s GET, 10s poll" {
			t.Errorf("on the wire: %s", wire.timeline(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		pool := readPool(t)
		answers := replySequence(acceptedWrite10, reply{}, done, withEtag("e3", shown))
		wire, start := &fakeARM{answer: func(n int, r *http.Request) reply {
			if n == 2 {
				<-r.Context().Done()
			}
			return answers(n, r)
		}}, time.Now()
		if _, err := newClient(t, wire).PutPool(t.Context(), pool); err != nil || wire.timeline(start) != "0s PUT, 2s GET, 10s poll, 10s GET" {
			t.Errorf("%v; on the wire: %s", err, wire.timeline(start))
		}
	})
}

// After a slow write, the next write of the load balancer has no early reads, until one has
// finished at its first poll.
func TestSlowWritesAreNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, over := readPool(t), withEtag("e3", shown)
		running := withEtag("e2", reply{status: 200, body: poolBody("Updating", "10.0.0.4")})
		wire, start := &fakeARM{answer: replySequence(
			acceptedWrite10, running, running, working, done, over, // slow
			acceptedWrite10, working, done, over, // slow
			acceptedWrite10, done, over, // fast again
			acceptedWrite10, over,
		)}, time.Now()
		client := newClient(t, wire)
		for range 4 {
			if _, err := client.PutPool(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
		}
		want := "0s PUT, 2s GET, 5s GET, 10s poll, 12s poll, 12s GET, " +
			"12s PUT, 22s poll, 24s poll, 24s GET, " +
			"24s PUT, 34s poll, 34s GET, " +
			"34s PUT, 36s GET"
		if got := wire.timeline(start); got != want {
			t.Errorf("on the wire:\n got %s\nwant %s", got, want)
		}
	})
}

// A first poll before the early reads does not mark a write as slow.
func TestAnEarlyPollIsNoSlowWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, over := readPool(t), withEtag("e3", shown)
		wire, start := &fakeARM{answer: replySequence(withEtag("e2", slower(accepted, "1")), working, done, over, acceptedWrite10, over)}, time.Now()
		client := newClient(t, wire)
		for range 2 {
			if _, err := client.PutPool(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := wire.timeline(start), "0s PUT, 1s poll, 3s poll, 3s GET, 3s PUT, 5s GET"; got != want {
			t.Errorf("on the wire:\n got %s\nwant %s", got, want)
		}
	})
}

// A load balancer write has finished once its children and members show the result.
func TestALoadBalancerShowsTheEndOfItsWrite(t *testing.T) {
	before, written := reply{status: 200, body: busyBalancer}, withEtag("e3", reply{status: 200, body: busyBalancer})
	taken := withEtag("e2", reply{status: 200, body: strings.Replace(busyBalancer, `"Succeeded"`, `"Updating"`, 1), header: slower(accepted, "10").header})
	polled := "0s PUT, 2s GET, 5s GET, 10s poll, 10s GET"
	without := func(part, by string) reply {
		return reply{status: 200, body: strings.ReplaceAll(written.body, part, by)}
	}
	for name, tt := range map[string]struct {
		looks    reply
		timeline string
	}{
		"it shows it":                {written, "0s PUT, 2s GET"},
		"it is as before":            {before, polled},
		"it still runs":              {taken, polled},
		"another rule":               {without(`"name": "web-80"`, `"name": "web-443"`), polled},
		"another probe":              {without(`"name": "old"`, `"name": "new"`), polled},
		"another frontend":           {without(`"name": "inner"`, `"name": "outer"`), polled},
		"another pool":               {without(`"name": "second"`, `"name": "third"`), polled},
		"another member":             {without("10.0.0.4", "10.0.0.5"), polled},
		"another state of a member":  {without(`"adminState": "Down"`, `"adminState": "Up"`), polled},
		"members of a pool are gone": {without(`{"name": "n1", "properties": {"ipAddress": "10.0.0.4", "adminState": "Down"}}`, ""), polled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := readBalancer(t)
				wire, start := &fakeARM{answer: replySequence(taken, tt.looks, tt.looks, done, written)}, time.Now()
				if tt.timeline != polled {
					wire.answer = replySequence(taken, tt.looks)
				}
				got, err := newClient(t, wire).PutLoadBalancer(t.Context(), b)
				if err != nil || got.Etag != `W/"e3"` || len(got.Pools) != 5 || wire.timeline(start) != tt.timeline {
					t.Errorf("%v, etag %s, %d pools; on the wire:\n got %s\nwant %s", err, got.Etag, len(got.Pools), wire.timeline(start), tt.timeline)
				}
			})
		})
	}
}
