// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/test/apifault"
)

// maxRequests is the maximum number of requests of a one-pool controller in a fault of two seconds and
// until it is in sync: about three times the measured number, except for Retry-After: 0, with which
// client-go retries eleven times at once.
const maxRequests = 300

// apiFault is a fault of the API server: rules, actions, or both.
type apiFault struct {
	name  string
	rules []apifault.Rule
	also  func(s *stage)
}

var anyRequest = apifault.Request{}

func onlyRules(verb string) apifault.Request { return apifault.Request{Verb: verb} }

func allRequests(about apifault.Request, f apifault.Fault) []apifault.Rule {
	return []apifault.Rule{{Request: about, Fault: f}}
}

func times(n int, about apifault.Request, f apifault.Fault) []apifault.Rule {
	return []apifault.Rule{{Request: about, Times: n, Fault: f}}
}

func resetRules(s *stage) { s.proxy.ResetConnections() }

var apiFaults = []apiFault{
	{"429 with Retry-After: 0 on everything", allRequests(anyRequest, hasText(http.StatusTooManyRequests, "0")), nil},
	{"429 with Retry-After on everything", allRequests(anyRequest, hasText(http.StatusTooManyRequests, "1")), nil},
	{"503 with Retry-After on everything", allRequests(anyRequest, hasText(http.StatusServiceUnavailable, "1")), nil},
	{"429 without Retry-After on everything", allRequests(anyRequest, hasText(http.StatusTooManyRequests, "")), nil},
	{"503 without Retry-After on everything", allRequests(anyRequest, hasText(http.StatusServiceUnavailable, "")), nil},
	{"503 without Retry-After on every write", slices.Concat(
		allRequests(onlyRules("patch"), hasText(http.StatusServiceUnavailable, "")),
		allRequests(onlyRules("create"), hasText(http.StatusServiceUnavailable, "")),
		allRequests(onlyRules("update"), hasText(http.StatusServiceUnavailable, "")),
	), nil},
	{"500 on every event", allRequests(apifault.Request{Resource: "events"}, hasText(http.StatusInternalServerError, "")), nil},
	{"the answer to every write is lost", times(8, onlyRules("patch"), apifault.Fault{Connection: apifault.ResetConn, AfterServer: true}), nil},
	{"resets", nil, func(s *stage) {
		for range 10 {
			s.proxy.ResetConnections()
			s.waitFault(200 * time.Millisecond)
		}
	}},
	{"GOAWAY and closed", times(5, onlyRules("patch"), apifault.Fault{Connection: apifault.GoAwayConn}), nil},
	{"GOAWAY after every answer", allRequests(anyRequest, apifault.Fault{Connection: apifault.DrainConn}), nil},
	{"watches torn in the middle of an event", allRequests(onlyRules("watch"), apifault.Fault{Truncate: true, TruncateAfter: 1}), resetRules},
	{"watches refused with 410", times(8, onlyRules("watch"), hasText(http.StatusGone, "")), resetRules},
	{"watches that say 410", times(8, onlyRules("watch"), apifault.Fault{ExpireWatch: true}), resetRules},
}

// Endpoints move during each fault, and one Azure write gets a conflict. Afterwards pool and record
// are correct, the Service has all events, and the number of API requests is limited.
func TestTheControllerUnderFaults(t *testing.T) {
	for _, w := range apiFaults {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.runController(k8s.DefaultQueueBackoff())
			s.waitInSync(1)
			s.proxy.Forget()
			s.conflictNextWrites(1)
			s.churnDuring(w)
			elapsed := s.waitInSync(5, 6)
			s.checkRecorded()
			sent, reached := s.proxy.CountCalls(anyRequest)
			if sent > maxRequests {
				t.Errorf("%d requests, more than %d: it does not leave the API server alone", sent, maxRequests)
			}
			t.Logf("in sync %s after it; %d requests, %d came through", elapsed.Round(time.Millisecond), sent, reached)
		})
	}
}

// churnDuring moves the endpoints during a fault, finally to the fifth and sixth node.
func (s *stage) churnDuring(w apiFault) {
	s.Helper()
	for _, rule := range w.rules {
		defer s.proxy.AddRule(rule)()
	}
	beside := make(chan struct{})
	go func() {
		defer close(beside)
		if w.also != nil {
			w.also(s)
		}
	}()
	s.churnEndpoints()
	<-beside
	s.moveEndpoints(5, 6)
}
