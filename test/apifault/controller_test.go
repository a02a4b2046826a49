// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/test/apifault"
)

// bound is the maximum number of requests of a one-pool controller in a fault of two seconds and
// until it is in sync: about three times the measured number, except for Retry-After: 0, with which
// client-go retries eleven times at once.
const bound = 300

// weather is a fault of the API server: rules, actions, or both.
type weather struct {
	name  string
	rules []apifault.Rule
	also  func(s *stage)
}

var anything = apifault.Request{}

func only(verb string) apifault.Request { return apifault.Request{Verb: verb} }

func always(what apifault.Request, f apifault.Fault) []apifault.Rule {
	return []apifault.Rule{{Request: what, Fault: f}}
}

func times(n int, what apifault.Request, f apifault.Fault) []apifault.Rule {
	return []apifault.Rule{{Request: what, Times: n, Fault: f}}
}

func resets(s *stage) { s.proxy.ResetAll() }

var weathers = []weather{
	{"429 with Retry-After: 0 on everything", always(anything, says(http.StatusTooManyRequests, "0")), nil},
	{"429 with Retry-After on everything", always(anything, says(http.StatusTooManyRequests, "1")), nil},
	{"503 with Retry-After on everything", always(anything, says(http.StatusServiceUnavailable, "1")), nil},
	{"429 without Retry-After on everything", always(anything, says(http.StatusTooManyRequests, "")), nil},
	{"503 without Retry-After on everything", always(anything, says(http.StatusServiceUnavailable, "")), nil},
	{"503 without Retry-After on every write", slices.Concat(
		always(only("patch"), says(http.StatusServiceUnavailable, "")),
		always(only("create"), says(http.StatusServiceUnavailable, "")),
		always(only("update"), says(http.StatusServiceUnavailable, "")),
	), nil},
	{"500 on every event", always(apifault.Request{Resource: "events"}, says(http.StatusInternalServerError, "")), nil},
	{"the answer to every write is lost", times(8, only("patch"), apifault.Fault{Conn: apifault.Reset, Landed: true}), nil},
	{"resets", nil, func(s *stage) {
		for range 10 {
			s.proxy.ResetAll()
			s.lasts(200 * time.Millisecond)
		}
	}},
	{"GOAWAY and closed", times(5, only("patch"), apifault.Fault{Conn: apifault.GoAway}), nil},
	{"GOAWAY after every answer", always(anything, apifault.Fault{Conn: apifault.Draining}), nil},
	{"watches torn in the middle of an event", always(only("watch"), apifault.Fault{Torn: true, TornAfter: 1}), resets},
	{"watches refused with 410", times(8, only("watch"), says(http.StatusGone, "")), resets},
	{"watches that say 410", times(8, only("watch"), apifault.Fault{Expired: true}), resets},
}

// Endpoints move during each fault, and one Azure write gets a conflict. Afterwards pool and record
// are correct, the Service has all events, and the number of API requests is limited.
func TestTheControllerUnderFaults(t *testing.T) {
	for _, w := range weathers {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.starts(workqueue.DefaultBackoff())
			s.level(1)
			s.proxy.Forget()
			s.azureIsBusy(1)
			s.churnsIn(w)
			took := s.level(5, 6)
			s.keptItsWord()
			sent, reached := s.proxy.Count(anything)
			if sent > bound {
				t.Errorf("%d requests, more than %d: it does not leave the API server alone", sent, bound)
			}
			t.Logf("level %s after it; %d requests, %d came through", took.Round(time.Millisecond), sent, reached)
		})
	}
}

// churnsIn moves the endpoints during a fault, finally to the fifth and sixth node.
func (s *stage) churnsIn(w weather) {
	s.Helper()
	for _, rule := range w.rules {
		defer s.proxy.On(rule)()
	}
	beside := make(chan struct{})
	go func() {
		defer close(beside)
		if w.also != nil {
			w.also(s)
		}
	}()
	s.churns()
	<-beside
	s.moves(5, 6)
}
