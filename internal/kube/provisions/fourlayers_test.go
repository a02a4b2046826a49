// SPDX-License-Identifier: Apache-2.0

package provisions

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

// four is what a condition costs each of the four layers: requests that are asked again by the API call are among wire.
type four struct {
	wire     int   // requests, of all that follows
	pool     int   // attempts of the pool update
	queue    int   // reconciliations that are repeated
	attempts int32 // of the Provision
}

// atAzure has writes of a pool meet a condition for an hour, by the real SDK, and counts. A pool update has three retries.
func atAzure(t *testing.T, fault string) (is four) {
	synctest.Test(t, func(t *testing.T) {
		s := scenario.New(scenario.Options{Settle: synctest.Wait, MaxRetries: 3})
		does := func(line string) string {
			line, below, _ := strings.Cut(line, "\n")
			step, err := scenario.ParseStep(line)
			if err != nil {
				t.Fatal(err)
			}
			step.Input = below
			said, err := s.Do(step)
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, said)
			}
			return said
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
			is.wire += of
		}
		events := does("events")
		is.pool = strings.Count(events, "web:Retrying") + strings.Count(events, "web:Failed")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return is
}

// atTarget has the object of a step meet a condition, in three attempts.
func atTarget(t *testing.T, fault http.HandlerFunc) (is four) {
	synctest.Test(t, func(t *testing.T) {
		target := &faulty{fault: fault}
		w, key := newLayers(t, target, "write", true, "")
		w.runs(func() { w.look(key); time.Sleep(time.Hour) })
		cost := w.cost(target, key)
		is = four{wire: cost.calls, queue: cost.queue, attempts: cost.attempts}
	})
	return is
}

// One condition, wherever it is met: the API call asks again, or the pool update makes another attempt, or the Provision does, or the
// work queue looks again; each once, and never one within another.
func TestNoLayerRetriesForAnother(t *testing.T) {
	for _, tt := range []struct {
		name   string
		azure  string
		target http.HandlerFunc
		want   [2]four
	}{
		// the SDK asks three times more, and the pool is given up; client-go asks for a write once, and the Provision tries again
		{"500", "fail on=PUT status=500 times=100", refuses(500), [2]four{{wire: 5, pool: 1}, {wire: 3, attempts: 3}}},
		{"503", "fail on=PUT status=503 times=100", refuses(503), [2]four{{wire: 5, pool: 1}, {wire: 3, attempts: 3}}},
		// the pool update has three retries, each of one read and one write
		{"409", "fail on=PUT status=409 times=100", refuses(409), [2]four{{wire: 8, pool: 4}, {wire: 3, attempts: 3}}},
		{"429, Retry-After: 7", "throttle on=PUT pool=web code=RetryableError/ReferencedResourceNotProvisioned retry-after=7 times=100", refuses(429, "Retry-After", "7"), [2]four{{wire: 8, pool: 4}, {wire: 3, attempts: 3}}},
		// nobody's to ask again but the Provision's, whose target somebody may mend
		{"403", "fail on=PUT status=403 times=100", refuses(403), [2]four{{wire: 2, pool: 1}, {wire: 3, attempts: 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := [2]four{atAzure(t, tt.azure), atTarget(t, tt.target)}; got != tt.want {
				t.Errorf("at Azure, and at a target: %+v, want %+v", got, tt.want)
			}
		})
	}
}
