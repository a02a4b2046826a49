// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/observe/metrics"
)

func TestPoolsOutOfSyncReportForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		var pools []metrics.OutOfSyncPool
		metrics.RegisterOutOfSync(reg, func() []metrics.OutOfSyncPool { return pools })
		const each, oldest = "weir_backendpool_out_of_sync_seconds", "weir_backendpools_out_of_sync_oldest_seconds"
		shows := func(want string) {
			t.Helper()
			head := "# HELP " + oldest + " Longest time for which a BackendPool has been out of sync; 0 if all are in sync.\n# TYPE " + oldest + " gauge\n"
			if strings.Contains(want, each) {
				head = "# HELP " + each + " Time for which a BackendPool has been out of sync, by name; the 100 longest. Paused pools and dry runs are excluded.\n# TYPE " + each + " gauge\n" + head
			}
			if err := testutil.GatherAndCompare(reg, strings.NewReader(head+want)); err != nil {
				t.Error(err)
			}
		}
		shows(oldest + " 0\n")
		pools = []metrics.OutOfSyncPool{
			{Namespace: "shop", Name: "web", State: "Retrying", Since: time.Now()},
			{Namespace: "shop", Name: "api", State: "Failed", Since: time.Now().Add(-time.Minute)},
			{Namespace: "shop", Name: "early", State: "Pending", Since: time.Now().Add(time.Hour)}, // from a clock ahead of ours
		}
		time.Sleep(time.Minute)
		shows(each + `{name="api",namespace="shop",state="Failed"} 120` + "\n" +
			each + `{name="early",namespace="shop",state="Pending"} 0` + "\n" +
			each + `{name="web",namespace="shop",state="Retrying"} 60` + "\n" + oldest + " 120\n")
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Errorf("lint: %v %v", problems, err)
		}
	})
}

// At most a hundred series, for the oldest pools, however many BackendPools users create.
func TestSeriesOfPoolsOutOfSyncAreBounded(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	metrics.RegisterOutOfSync(reg, func() (pools []metrics.OutOfSyncPool) {
		for i := range 1000 {
			pools = append(pools, metrics.OutOfSyncPool{Namespace: "shop", Name: fmt.Sprint(i), State: "Failed", Since: time.Unix(int64(1000-i), 0)})
		}
		return pools
	})
	series, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range series[0].GetMetric() {
		names[m.GetLabel()[0].GetValue()] = true
	}
	if len(names) != 100 || !names["999"] || !names["900"] || names["899"] {
		t.Errorf("%d series: %v", len(names), names)
	}
}

func TestBuildInfo(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	metrics.RegisterBuild(reg, "v1.2.3")
	want := fmt.Sprintf("# HELP weir_build_info 1, with the version of Weir, the version of Go that compiled it, and the processor's architecture.\n"+
		"# TYPE weir_build_info gauge\nweir_build_info{goarch=%q,goversion=%q,version=\"v1.2.3\"} 1\n", runtime.GOARCH, runtime.Version())
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
