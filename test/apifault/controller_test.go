// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"net/http"
	"testing"
	"time"

	"weir.dev/weir/internal/kube"
	"weir.dev/weir/test/apifault"
)

// bound is how many requests a controller of one pool may make in a fault of two
// seconds and until it is level again: about three times what was measured, but for
// Retry-After: 0, with which client-go asks eleven times in a row.
const bound = 300

// Each fault lasts while endpoints move and one write of Azure meets a conflict. After it the pool
// is level and its record right, the Service was told every word, and the controller
// has not hammered the API server meanwhile.
func TestTheControllerUnderFaults(t *testing.T) {
	any := apifault.Request{}
	only := func(verb string) apifault.Request { return apifault.Request{Verb: verb} }
	tests := []struct {
		name  string
		rules []apifault.Rule
		// also runs beside the endpoints' moves.
		also func(s *stage)
	}{
		{"429 with Retry-After: 0 on everything", []apifault.Rule{{Request: any, Fault: says(http.StatusTooManyRequests, "0")}}, nil},
		{"429 with Retry-After on everything", []apifault.Rule{{Request: any, Fault: says(http.StatusTooManyRequests, "1")}}, nil},
		{"503 with Retry-After on everything", []apifault.Rule{{Request: any, Fault: says(http.StatusServiceUnavailable, "1")}}, nil},
		{"429 without Retry-After on everything", []apifault.Rule{{Request: any, Fault: says(http.StatusTooManyRequests, "")}}, nil},
		{"503 without Retry-After on everything", []apifault.Rule{{Request: any, Fault: says(http.StatusServiceUnavailable, "")}}, nil},
		{"503 without Retry-After on every write", []apifault.Rule{
			{Request: only("patch"), Fault: says(http.StatusServiceUnavailable, "")},
			{Request: only("create"), Fault: says(http.StatusServiceUnavailable, "")},
			{Request: only("update"), Fault: says(http.StatusServiceUnavailable, "")},
		}, nil},
		{"500 on every event", []apifault.Rule{{Request: apifault.Request{Resource: "events"}, Fault: says(http.StatusInternalServerError, "")}}, nil},
		{"the answer to every write is lost", []apifault.Rule{{Request: only("patch"), Times: 8, Fault: apifault.Fault{Conn: apifault.Reset, Landed: true}}}, nil},
		{"resets", nil, func(s *stage) {
			for range 10 {
				s.proxy.ResetAll()
				s.lasts(200 * time.Millisecond)
			}
		}},
		{"GOAWAY and closed", []apifault.Rule{{Request: only("patch"), Times: 5, Fault: apifault.Fault{Conn: apifault.GoAway}}}, nil},
		{"GOAWAY after every answer", []apifault.Rule{{Request: any, Fault: apifault.Fault{Conn: apifault.Draining}}}, nil},
		{"watches torn in the middle of an event", []apifault.Rule{{Request: only("watch"), Fault: apifault.Fault{Torn: true, TornAfter: 1}}},
			func(s *stage) { s.proxy.ResetAll() }},
		{"watches refused with 410", []apifault.Rule{{Request: only("watch"), Times: 8, Fault: says(http.StatusGone, "")}},
			func(s *stage) { s.proxy.ResetAll() }},
		{"watches that say 410", []apifault.Rule{{Request: only("watch"), Times: 8, Fault: apifault.Fault{Expired: true}}},
			func(s *stage) { s.proxy.ResetAll() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.starts(kube.StandardRequeue())
			s.level(1)
			s.proxy.Forget()
			s.azureIsBusy(1)

			var heal []func()
			for _, rule := range tt.rules {
				heal = append(heal, s.proxy.On(rule))
			}
			beside := make(chan struct{})
			go func() {
				defer close(beside)
				if tt.also != nil {
					tt.also(s)
				}
			}()
			s.churns()
			<-beside
			s.moves(5, 6)
			for _, stop := range heal {
				stop()
			}
			took := s.level(5, 6)
			s.keptItsWord()
			sent, reached := s.proxy.Count(any)
			if sent > bound {
				t.Errorf("%d requests, more than %d: it does not leave the API server alone", sent, bound)
			}
			t.Logf("level %s after it; %d requests, %d came through", took.Round(time.Millisecond), sent, reached)
		})
	}
}
