// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"flag"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

var failFor = flag.Duration("fail-for", 30*24*time.Hour, "for how long attempts fail; 8760h is a year, and takes minutes")

// maxGrowth is in bytes per attempt: below any object it creates, above measurement noise.
const maxGrowth = 96

type noEvents struct{}

func (noEvents) Add(runtime.Object, string, string, string) {}

// For a month or longer, the number of attempts matches the table and memory does not grow.
func TestAttemptsTakeNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of attempts")
	}
	for name, dial := range map[string]dial{
		"nobody answers": func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"never ready":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { attemptsTakeNoMemory(t, dial) })
		})
	}
}

func attemptsTakeNoMemory(t *testing.T, by dial) {
	retries := int32(1_000_000)
	retryPolicy := v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "30s", Factor: "1.048", MaxInterval: "48m", AttemptTimeout: "22m"}
	w := newTestEnv(t, &fakeServer{}, newRemote(0, nodeWaitStep, retryPolicy, true)...)
	if w.room.Events = (noEvents{}); by != nil {
		w.room.dial = by
	}
	key, _ := newProvision("shop", "edge-0")
	var retried []int
	var used []uint64
	w.runWhile(func() {
		begun := time.Now()
		w.queueProvision(key)
		for _, period := range policy.TablePeriods() {
			if period.Long > *failFor {
				break
			}
			time.Sleep(time.Until(begun.Add(period.Long)) + time.Millisecond)
			retried, used = append(retried, int(w.getProvision(key).Status.AttemptNumber)-1), append(used, heapInUse())
		}
	})
	if want := []int{58, 196, 669, 7561}[:len(retried)]; !slices.Equal(retried, want) {
		t.Errorf("%v retries in a day, a week, a month and a year, want %v", retried, want)
	}
	week, last := 1, len(used)-1
	if more := int64(used[last]) - int64(used[week]); more > int64(maxGrowth*(retried[last]-retried[week])) { //nolint:gosec // bytes of a heap
		t.Errorf("%v bytes are in use after a day, a week and so on: %d more for %d attempts", used, more, retried[last]-retried[week])
	}
	t.Logf("%v retries, %v bytes in use, %d requests to the API server, %d to the target", retried, used, w.requests, w.asked)
}
