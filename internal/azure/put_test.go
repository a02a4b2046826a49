// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/requestlog"
)

func slower(r reply, seconds string) reply {
	header := map[string]string{"Retry-After": seconds}
	for name, value := range r.header {
		header[name] = value
	}
	r.header = header
	return r
}

// timeline formats the requests with their times since start.
func (f *fakeARM) timeline(start time.Time) string {
	var lines []string
	for _, call := range f.calls {
		name := call.method
		if strings.Contains(call.path, "/operations/") {
			name = "poll"
		}
		lines = append(lines, call.at.Sub(start).String()+" "+name)
	}
	return strings.Join(lines, ", ")
}

// An operation is polled at Azure's pace, and only its real end counts. See also
// TestAPoolShowsTheEndOfItsWrite.
func TestFollowingAWrite(t *testing.T) {
	lockPoll := reply{status: 429, body: lockBody}
	ended := func(status, code, detail string) reply {
		return reply{status: 200, body: `{"status":"` + status + `",` + strings.TrimPrefix(errorBody(code, "Operation ended.", detail, "because"), "{")}
	}
	tests := []struct {
		name     string
		answers  []reply
		timeline string
		class    armerror.Class // empty for success
		code     string
	}{
		{"done at once", []reply{shown}, "0s PUT", "", ""},
		{"done at once, with an operation", []reply{{status: 200, body: shown.body, header: accepted.header}, shown}, "0s PUT, 0s GET", "", ""},
		{"server's pace", []reply{slower(accepted, "10"), shown, shown, slower(working, "3"), done, shown}, "0s PUT, 2s GET, 5s GET, 10s poll, 13s poll, 13s GET", "", ""},
		{"our pace", []reply{accepted, working, working, done, shown}, "0s PUT, 2s poll, 4s poll, 6s poll, 6s GET", "", ""},
		{"a pace of nothing", []reply{slower(accepted, "0"), done, shown}, "0s PUT, 1s poll, 1s GET", "", ""},
		{"body says Updating", []reply{{status: 200, body: poolBody("Updating")}, {status: 200, body: poolBody("Updating")}, shown}, "0s PUT, 2s GET, 4s GET", "", ""},
		{"poll throttled", []reply{accepted, slower(lockPoll, "7"), working, done, shown}, "0s PUT, 2s poll, 9s poll, 11s poll, 11s GET", "", ""},
		{"poll throttled without a time", []reply{accepted, lockPoll, lockPoll, done, shown}, "0s PUT, 2s poll, 12s poll, 22s poll, 22s GET", "", ""},
		{"an operation that asks for hours", []reply{slower(accepted, "86400"), shown, shown, done, shown}, "0s PUT, 2s GET, 5s GET, 1m0s poll, 1m0s GET", "", ""},
		{"result throttled", []reply{accepted, done, slower(lockPoll, "5"), shown}, "0s PUT, 2s poll, 2s GET, 7s GET", "", ""},
		{"poll fails for a while", []reply{accepted, {status: 503}, {err: errors.New("reset")}, done, shown}, "0s PUT, 2s poll, 1m2s poll, 2m2s poll, 2m2s GET", "", ""},
		{"poll fails", []reply{accepted, {status: 500}}, "0s PUT, 2s poll, 1m2s poll, 2m2s poll, 3m2s poll", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"poll has no answer", []reply{accepted, {err: errors.New("reset")}}, "0s PUT, 2s poll, 1m2s poll, 2m2s poll, 3m2s poll", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"poll is a 404", []reply{accepted, {status: 404, body: errorBody("NotFound", "Resource "+webPool.String()+" not found.")}}, "0s PUT, 2s poll", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"poll makes no sense", []reply{accepted, {status: 200, body: `{}`}}, "0s PUT, 2s poll", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"result is a 404", []reply{accepted, done, {status: 404, body: errorBody("NotFound", "Resource "+webPool.String()+" not found.")}}, "0s PUT, 2s poll, 2s GET", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"superseded", []reply{accepted, ended("Canceled", "Canceled", "CanceledAndSupersededDueToAnotherOperation")}, "0s PUT, 2s poll", armerror.Retriable, "CanceledAndSupersededDueToAnotherOperation"},
		{"superseded, with a pace that means no more", []reply{accepted, slower(ended("Canceled", "Canceled", "CanceledAndSupersededDueToAnotherOperation"), "50")}, "0s PUT, 2s poll", armerror.Retriable, "CanceledAndSupersededDueToAnotherOperation"},
		{"failed", []reply{accepted, ended("Failed", "InternalServerError", "InvalidSomething")}, "0s PUT, 2s poll", armerror.Terminal, "InvalidSomething"},
		{"body says Failed", []reply{{status: 200, body: poolBody("Updating")}, {status: 200, body: poolBody("Failed")}}, "0s PUT, 2s GET", armerror.Terminal, codeOperationFailed},
		{"nowhere to poll", []reply{{status: 201, body: poolBody("Updating"), header: map[string]string{"Azure-AsyncOperation": "no url"}}}, "0s PUT", armerror.Retriable, armerror.CodeOutcomeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := readPool(t)
				wire, start := &fakeARM{answer: replySequence(tt.answers...)}, time.Now()
				got, err := newClient(t, wire).PutPool(t.Context(), pool)
				if timeline := wire.timeline(start); timeline != tt.timeline {
					t.Errorf("on the wire:\n got %s\nwant %s", timeline, tt.timeline)
				}
				if tt.class != "" {
					if f := wantFault(t, err, tt.class, tt.code); !f.RetryAt.IsZero() {
						t.Errorf("retry at %v, want none", f.RetryAt)
					}
					return
				}
				if err != nil || len(got.Addresses) != 1 || got.Etag != `W/"e1"` || got.ID != webPool {
					t.Errorf("got %+v, %v", got, err)
				}
			})
		})
	}
}

// If-Match is sent only with the write. On a poll, Azure would compare another etag.
func TestIfMatchTravelsWithTheWriteAlone(t *testing.T) {
	for _, without := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			pool := readPool(t)
			wire := &fakeARM{answer: replySequence(reply{status: 503}, accepted, working, done, shown)}
			client := newClient(t, wire, func(o *Options) { o.WithoutIfMatch = without })
			if _, err := client.PutPool(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			for i, call := range wire.calls {
				want := ""
				if call.method == http.MethodPut && !without {
					want = `W/"e1"`
				}
				if got := call.header.Get("If-Match"); got != want {
					t.Errorf("request %d (%s): If-Match %q, want %q", i+1, call.method, got, want)
				}
			}
			if wire.count(http.MethodPut) != 2 {
				t.Errorf("%d writes, want the retried one to carry the guard as well", wire.count(http.MethodPut))
			}
		})
	}
}

func TestEveryRequestNamesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := readPool(t)
		var observed []string
		wire := &fakeARM{answer: replySequence(accepted, reply{err: errors.New("reset")}, done, shown)}
		client := newClient(t, wire, func(o *Options) {
			o.UserAgent = "weir/1.2.3"
			o.OnRequest = func(c requestlog.Call) {
				observed = append(observed, c.Op+" "+http.StatusText(c.Status))
				if c.Resource != pool.ID.String() || c.At.IsZero() {
					t.Errorf("it was about %s at %s", c.Resource, c.At)
				}
			}
		})
		if _, err := client.PutPool(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		for _, call := range wire.calls {
			if agent := call.header.Get("User-Agent"); !strings.HasPrefix(agent, "weir/1.2.3 ") {
				t.Errorf("User-Agent %q", agent)
			}
			if auth := call.header.Get("Authorization"); auth != "Bearer "+testToken {
				t.Errorf("Authorization %q", auth)
			}
		}
		want := []string{"put Created", "poll ", "poll OK", "result OK"}
		if !slices.Equal(observed, want) {
			t.Errorf("observed %q, want %q", observed, want)
		}
	})
}

// Put returns what Azure shows, even after a success.
func TestPutReturnsWhatAzureShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := readPool(t)
		pool.Addresses = append(slices.Clone(pool.Addresses), address("n2", "10.0.0.5"))
		wire := &fakeARM{answer: replySequence(accepted, done, reply{status: 200, body: poolBody("Succeeded")})}
		got, err := newClient(t, wire).PutPool(t.Context(), pool)
		if err != nil || len(got.Addresses) != 0 {
			t.Errorf("got %v, %v; want the empty pool that Azure shows", got.Addresses, err)
		}
	})
}

func TestOneClientServesSeveralSubscriptions(t *testing.T) {
	wire := &fakeARM{answer: replySequence(shown)}
	client := newClient(t, wire)
	for _, id := range []lb.PoolID{poolID("s1", "a", "p"), poolID("s2", "a", "p"), poolID("s1", "b", "p")} {
		if _, err := client.GetPool(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := wire.calls[len(wire.calls)-1].path; got != id.String() {
			t.Errorf("asked %s, want %s", got, id)
		}
	}
}

// The response to the SDK's second try does not reveal the outcome of the first.
func TestAWriteThatWasTriedAgainIsUndecided(t *testing.T) {
	for name, second := range map[string]reply{
		"409": {status: 409, body: errorBody("AnotherOperationInProgress", "x", "", "")},
		"429": {status: 429, body: lockBody},
		"403": {status: 403, body: errorBody("AuthorizationFailed", "x", "", "")},
	} {
		synctest.Test(t, func(t *testing.T) {
			for first, undecided := range map[int]bool{504: true, 0: false} {
				answers := []reply{{status: first}, second}
				if first == 0 {
					answers = answers[1:]
				}
				c := newClient(t, &fakeARM{answer: replySequence(append([]reply{shown}, answers...)...)})
				pool, err := c.GetPool(t.Context(), webPool)
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.PutPool(t.Context(), pool)
				if f := armerror.FromError(err); f == nil || f.MayBeApplied != undecided {
					t.Errorf("%d, then %s: undecided is not %v: %v", first, name, undecided, err)
				}
			}
		})
	}
}

// Begin returns on acceptance with the load balancer's etag; only End polls.
func TestAWriteIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := readPool(t)
		wire, start := &fakeARM{answer: replySequence(slower(accepted, "10"), done, shown, shown, reply{status: 412, body: errorBody("PreconditionFailed", "The etag is old.")})}, time.Now()
		client := newClient(t, wire)
		begun, err := client.Begin(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		if begun.Etag != `W/"e1"` || begun.Completed || wire.timeline(start) != "0s PUT" {
			t.Errorf("it has etag %q, is over: %t, after %s", begun.Etag, begun.Completed, wire.timeline(start))
		}
		if after, err := begun.Wait(t.Context(), false); err != nil || len(after.Addresses) != 1 || wire.timeline(start) != "0s PUT, 10s poll, 10s GET" {
			t.Errorf("it ends with %v, %v, after %s", after, err, wire.timeline(start))
		}
		if begun, err = client.Begin(t.Context(), pool); err != nil || !begun.Completed {
			t.Errorf("a write that is done at once is over: %t, %v", begun.Completed, err)
		}
		_, err = client.Begin(t.Context(), pool)
		wantFault(t, err, armerror.Retriable, "PreconditionFailed")
	})
}

// A response that already shows the failure of its operation is read as a whole: it names the cause.
func TestAFailureInTheFirstResponse(t *testing.T) {
	pool := readPool(t)
	body := strings.Replace(poolBody("Failed", "10.0.0.4"), "{", `{"error":{"code":"InvalidSomething","message":"because"},`, 1)
	wire := &fakeARM{answer: replySequence(reply{status: 201, body: body, header: accepted.header})}
	_, err := newClient(t, wire).PutPool(t.Context(), pool)
	if f := wantFault(t, err, armerror.Terminal, "InvalidSomething"); !strings.Contains(f.Error(), "because") {
		t.Errorf("%v", f)
	}
}
