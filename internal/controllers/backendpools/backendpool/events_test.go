// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// The events are a contract with users and tools, so the test spells them out.
func TestEventMessages(t *testing.T) {
	web := []schedule.ServiceName{{Namespace: "shop", Name: "web"}}
	refused := &armerror.Fault{Class: armerror.Terminal, Code: "InvalidRequestFormat", Err: errors.New("put backend pool web: 400 InvalidRequestFormat: Not now")}
	throttled := &armerror.Fault{Class: armerror.Retriable, Code: "TooManyRequests", Err: errors.New("put backend pool web: 429 TooManyRequests: slow down")}
	for _, tt := range []struct {
		name string
		r    updater.Report
		want string
	}{
		{"Updated", updater.Report{Outcome: diff.Written, InSync: true, Updated: web},
			"Normal LoadBalancerBackendPoolUpdated: Load balancer backend pool updated successfully"},
		{"Repaired", updater.Report{Outcome: diff.Written, InSync: true, Updated: web, Resync: true},
			"Normal LoadBalancerBackendPoolUpdated: Load balancer backend pool updated successfully: nothing had changed in the cluster, and the pool in Azure differed from what Weir had written"},
		{"Contested", updater.Report{Outcome: diff.Written, InSync: true, Updated: web, Resync: true, Conflicting: []netip.Addr{{}}},
			"Normal LoadBalancerBackendPoolUpdated: Load balancer backend pool updated successfully"},
		{"Retrying", updater.Report{Outcome: diff.Retriable, Fault: throttled, Retrying: web, WillRetry: true, RetryAt: time.Date(2026, 11, 22, 9, 0, 30, 1, time.UTC)},
			"Warning LoadBalancerBackendPoolUpdateRetrying: Backend pool update failed: put backend pool web: 429 TooManyRequests: slow down. Another attempt follows at 2026-11-22T09:00:31Z."},
		{"Failed", updater.Report{Outcome: diff.Terminal, Fault: refused, Failed: web},
			"Warning LoadBalancerBackendPoolUpdateFailed: Backend pool update failed: put backend pool web: 400 InvalidRequestFormat: Not now. To retrigger, cause an endpoint change for the Service (e.g., restart or scale a backing pod)."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			tt.r.Ref, tt.r.Pool, tt.r.At = RefOf(d.p), d.ResolveBinding(d.p, time.Now()).Pool, time.Unix(1000, 0)
			d.Report(t.Context(), tt.r)
			var got []string
			for e, waits := d.world.nextEvent(); waits; e, waits = d.world.nextEvent() {
				if e.about == "Service" {
					got = append(got, fmt.Sprintf("%s %s: %s", e.Kind, e.Reason, e.Text))
					if e.name != "shop/web" {
						t.Errorf("about %s", e.name)
					}
				}
			}
			if len(got) != 1 || got[0] != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Admin states have their own events; a pool of nodes only gets the end of a failure.
func TestAdminStatesCauseNoPoolEvent(t *testing.T) {
	e := &Entry{}
	written := updater.Report{Outcome: diff.Written, InSync: true, Admin: true}
	for _, outcome := range []diff.Outcome{diff.Retriable, diff.Terminal} {
		if word, _ := eventReason(updater.Report{Outcome: outcome, Admin: true, WillRetry: true}); word != "" {
			t.Errorf("%s: %s", outcome, word)
		}
	}
	if word := e.nextEventReason(eventReason(written)); word != "" {
		t.Errorf("a change of admin states says %s", word)
	}
	e.status.LastEvent = &v1alpha1.LastEvent{Reason: EventFailed}
	if word := e.nextEventReason(eventReason(written)); word != EventUpdated {
		t.Errorf("after a failure: %q", word)
	}
}

// The event is one line with code and advice, whatever Azure returns.
func FuzzFailedEvent(f *testing.F) {
	f.Add("Code", "message")
	f.Add("InvalidRequestFormat", strings.Repeat("ä", 2000))
	f.Add("", "a\x00b\r\n\u202ec\xff")
	f.Fuzz(func(t *testing.T, code, text string) {
		got := failureEventMessage(updater.Report{Fault: &armerror.Fault{Code: code, Err: fmt.Errorf("%s", text)}})
		if len(got) > humanize.MaxMessage || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if !strings.HasSuffix(got, strings.TrimPrefix(failureAdvice, ".")) || strings.Contains(got, "….") != strings.Contains(text, "….") || !strings.Contains(got, humanize.FormatMessage(code, humanize.MaxCode)) {
			t.Errorf("advice or code is missing: %q", got)
		}
	})
}
