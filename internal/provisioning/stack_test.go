// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/scenario"
)

// stackCost counts what a fault costs each of the four layers.
type stackCost struct {
	wire     int
	pool     int
	queue    int
	attempts int32
}

// atAzure injects a fault into pool updates for an hour, through the real SDK.
func atAzure(t *testing.T, fault string) (cost stackCost) {
	synctest.Test(t, func(t *testing.T) {
		s := scenario.New(scenario.Options{Settle: synctest.Wait, MaxRetries: 3})
		does := func(line string) string {
			line, below, _ := strings.Cut(line, "\n")
			step, err := scenario.ParseStep(line)
			if err != nil {
				t.Fatal(err)
			}
			step.Input = below
			output, err := s.Do(step)
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, output)
			}
			return output
		}
		for _, line := range []string{
			"cluster\nnodes 9\nlb kubernetes\npool kubernetes/web\nservice web pools=(web) nodes=(n1)", "clock 10s quiet",
			"calls", "events", fault, "scale web nodes=(n3, n4)", "clock 4m quiet",
		} {
			does(line)
		}
		for _, n := range regexp.MustCompile(`(\d+) (GET|PUT)`).FindAllStringSubmatch(does("calls"), -1) {
			var of int
			if _, err := fmt.Sscan(n[1], &of); err != nil {
				t.Fatal(err)
			}
			cost.wire += of
		}
		events := does("events")
		cost.pool = strings.Count(events, "web:Retrying") + strings.Count(events, "web:Failed")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return cost
}

func atTarget(t *testing.T, fault http.HandlerFunc) (got stackCost) {
	synctest.Test(t, func(t *testing.T) {
		target := &faultyTarget{fault: fault}
		w, key := newRetryCost(t, target, "write", true, "")
		w.runWhile(func() { w.queueProvision(key); time.Sleep(time.Hour) })
		cost := w.retryCosts(target, key)
		got = stackCost{wire: cost.calls, queue: cost.queue, attempts: cost.attempts}
	})
	return got
}

// Each fault is retried by exactly one layer: API call, pool update, Provision or work queue.
func TestNoLayerRetriesForAnother(t *testing.T) {
	for _, tt := range []struct {
		name   string
		azure  string
		target http.HandlerFunc
		want   [2]stackCost
	}{
		// the SDK sends three retries and the update fails; client-go sends a write once and the
		// Provision retries
		{"500", "fail on=PUT status=500 times=100", respondStatus(500), [2]stackCost{{wire: 5, pool: 1}, {wire: 3, attempts: 3}}},
		{"503", "fail on=PUT status=503 times=100", respondStatus(503), [2]stackCost{{wire: 5, pool: 1}, {wire: 3, attempts: 3}}},
		// the pool update has three retries of one read and one write
		{"409", "fail on=PUT status=409 times=100", respondStatus(409), [2]stackCost{{wire: 8, pool: 4}, {wire: 3, attempts: 3}}},
		{"429, Retry-After: 7", "throttle on=PUT pool=web code=RetryableError/ReferencedResourceNotProvisioned retry-after=7 times=100", respondStatus(429, "Retry-After", "7"), [2]stackCost{{wire: 8, pool: 4}, {wire: 3, attempts: 3}}},
		// only the Provision retries: the target's rights may be fixed
		{"403", "fail on=PUT status=403 times=100", respondStatus(403), [2]stackCost{{wire: 2, pool: 1}, {wire: 3, attempts: 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := [2]stackCost{atAzure(t, tt.azure), atTarget(t, tt.target)}; got != tt.want {
				t.Errorf("at Azure, and at a target: %+v, want %+v", got, tt.want)
			}
		})
	}
}
