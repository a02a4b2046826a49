// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolupdate"
)

// The words, types and reasons of the three events are a contract with people and tools: they
// stand here as they are written, and not by the names of constants.
func TestTheWordsOfTheThreeEvents(t *testing.T) {
	web := []poolupdate.ServiceName{{Namespace: "shop", Name: "web"}}
	refused := &fault.Fault{Class: fault.Terminal, Code: "InvalidRequestFormat", Err: errors.New("put backend pool web: 400 InvalidRequestFormat: Not now")}
	throttled := &fault.Fault{Class: fault.Retriable, Code: "TooManyRequests", Err: errors.New("put backend pool web: 429 TooManyRequests: slow down")}
	for _, tt := range []struct {
		name string
		r    poolupdate.Report
		want string
	}{
		{"Updated", poolupdate.Report{Outcome: poolupdate.Written, Settled: true, Updated: web},
			"Normal LoadBalancerBackendPoolUpdated: Load balancer backend pool updated successfully"},
		{"Retrying", poolupdate.Report{Outcome: poolupdate.Retriable, Fault: throttled, Retrying: web, Requeued: true, RetryAt: time.Date(2026, 11, 22, 9, 0, 30, 1, time.UTC)},
			"Warning LoadBalancerBackendPoolUpdateRetrying: Backend pool update failed: put backend pool web: 429 TooManyRequests: slow down. Another attempt follows at 2026-11-22T09:00:31Z."},
		{"Failed", poolupdate.Report{Outcome: poolupdate.Terminal, Fault: refused, Failed: web},
			"Warning LoadBalancerBackendPoolUpdateFailed: Backend pool update failed: put backend pool web: 400 InvalidRequestFormat: Not now. To retrigger, cause an endpoint change for the Service (e.g., restart or scale a backing pod)."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := atDesk(t)
			tt.r.Ref, tt.r.Pool, tt.r.At = refOf(d.p), d.snap.standingOf(d.p).pool, time.Unix(1000, 0)
			d.Report(t.Context(), tt.r)
			var got []string
			for e, waits := d.events.next(); waits; e, waits = d.events.next() {
				if e.InvolvedObject.Kind == "Service" {
					got = append(got, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
					if e.InvolvedObject.Namespace != "shop" || e.InvolvedObject.Name != "web" || e.Source.Component != "weir" || e.ReportingController != "weir" {
						t.Errorf("about %+v, by %+v %s", e.InvolvedObject, e.Source, e.ReportingController)
					}
				}
			}
			if len(got) != 1 || got[0] != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
