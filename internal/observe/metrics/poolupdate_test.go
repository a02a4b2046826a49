// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

var pool = lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "sub", ResourceGroup: "RG-Shop", Name: "kubernetes"}, Name: "web"}

// A change that succeeds after retries is one success; one that is abandoned is one failure.
func TestOnlyWhatIsFinalIsAnOperation(t *testing.T) {
	reg := prometheus.NewRegistry()
	updates := metrics.NewPoolUpdates(reg, pool.LoadBalancer)
	service := []schedule.ServiceName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "api"}}
	conflict := &armerror.Fault{Class: armerror.Retriable, Reason: "conflict"}
	retrying := updater.Report{Pool: pool, Outcome: diff.Retriable, Fault: conflict, WillRetry: true, Retrying: service, Duration: time.Second, HadConflict: true}
	for _, r := range []updater.Report{
		retrying, retrying,
		{Pool: pool, Outcome: diff.Written, Updated: service, Duration: 3 * time.Second, ChangedAt: time.Unix(1000, 0), At: time.Unix(1090, 0)},
		{Pool: pool, Outcome: diff.Written, At: time.Unix(2000, 0)}, // a resync
		{Pool: pool, Outcome: diff.Retriable, Fault: conflict, Failed: service, Duration: 4 * time.Second},
		{Pool: pool, Outcome: diff.Terminal, Fault: &armerror.Fault{Class: armerror.Terminal, Reason: "refused"}, Failed: service, Duration: time.Second},
		{Pool: pool, Outcome: diff.Unchanged},
		{Pool: pool, Outcome: diff.Unchanged, Resync: true, HadConflict: true},
		{Pool: pool, Outcome: diff.Stale, Fault: &armerror.Fault{Class: armerror.Stale, Reason: "gone"}},
		{Pool: pool, Outcome: diff.Postponed, Fault: &armerror.Fault{Class: armerror.Retriable, Reason: "not_ready"}, WillRetry: true},
	} {
		updates.Report(r)
	}
	labels := `{request="services_local_update_backend_pool",resource_group="rg-shop",source="local_service_backend_pool_updater",subscription_id="sub"}`
	want := `
# HELP cloudprovider_azure_op_failure_count Attempts that ended a change of a Service's pool as failure: not retriable, or out of retries. Of admin states: attempts that failed.
# TYPE cloudprovider_azure_op_failure_count counter
cloudprovider_azure_op_failure_count` + labels + ` 2
# HELP weir_pool_retries_total Failed attempts to update a pool that are retried, by cause.
# TYPE weir_pool_retries_total counter
weir_pool_retries_total{reason="conflict"} 2
# HELP weir_pool_drift_checks_total Pools that were read though nothing changed, by what came of it: Unchanged, Written or a failure.
# TYPE weir_pool_drift_checks_total counter
weir_pool_drift_checks_total{outcome="Unchanged"} 1
# HELP weir_etag_conflicts_total Attempts whose write got 412 because another client had written since the read, by resource and by the result of the immediate second try: settled, or failed.
# TYPE weir_etag_conflicts_total counter
weir_etag_conflicts_total{outcome="failed",resource="pool"} 2
weir_etag_conflicts_total{outcome="settled",resource="pool"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "cloudprovider_azure_op_failure_count", "weir_pool_retries_total", "weir_pool_drift_checks_total", "weir_etag_conflicts_total"); err != nil {
		t.Error(err)
	}
	if n, sum := histogram(t, reg, "cloudprovider_azure_op_duration_seconds"); n != 3 || sum != 8 {
		t.Errorf("%d operations of %v s in all, want 3 of 8 s", n, sum)
	}
	if n, sum := histogram(t, reg, "weir_endpoint_to_pool_seconds"); n != 1 || sum != 90 {
		t.Errorf("%d lags of %v s in all, want that of the one change: from when it was seen", n, sum)
	}
}

// Each attempt to change admin states is an operation, unless it had nothing to do or was postponed. The time
// from taint to Down counts only for Down.
func TestEachAttemptAtAdminStatesIsAnOperation(t *testing.T) {
	reg := prometheus.NewRegistry()
	updates := metrics.NewPoolUpdates(reg, pool.LoadBalancer)
	refused := &armerror.Fault{Class: armerror.Terminal, Reason: "refused"}
	ip := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, r := range []updater.Report{
		{Pool: pool, Outcome: diff.Terminal, Fault: refused, Admin: true, AdminAttempted: true, AdminFailed: true, Duration: time.Second},
		{Pool: pool, Outcome: diff.Retriable, Fault: refused, Admin: true, AdminAttempted: true, Duration: time.Second},
		{Pool: pool, Outcome: diff.Written, Admin: true, AdminAttempted: true, AdminDone: true, Duration: 5 * time.Second, MarkedDown: ip, AdminSince: at(1000), At: at(1007)},
		{Pool: pool, Outcome: diff.Written, Admin: true, AdminAttempted: true, AdminDone: true, Duration: 2 * time.Second, MarkedUp: ip, AdminSince: at(2000), At: at(2003)},
		{Pool: pool, Outcome: diff.Unchanged, Admin: true, AdminAttempted: true, AdminDone: true, Duration: time.Second, AdminSince: at(3000), At: at(3001)},
		{Pool: pool, Outcome: diff.Postponed, Fault: refused, Admin: true, AdminAttempted: true, Duration: time.Second},
		{Pool: pool, Outcome: diff.Terminal, Fault: refused, AdminRetryAt: at(4000), Duration: time.Second},         // of a membership change that included it
		{Pool: pool, Outcome: diff.Written, MarkedDown: ip, AdminSince: at(0), At: at(5000), Duration: time.Second}, // added as Down
	} {
		updates.Report(r)
	}
	labels := `request="loadbalancer_adminstate_update_backend_pool",resource_group="rg-shop",source="admin_state_controller",subscription_id="sub"}`
	want := `
# HELP cloudprovider_azure_op_failure_count Attempts that ended a change of a Service's pool as failure: not retriable, or out of retries. Of admin states: attempts that failed.
# TYPE cloudprovider_azure_op_failure_count counter
cloudprovider_azure_op_failure_count{` + labels + ` 2
cloudprovider_azure_op_failure_count{request="services_local_update_backend_pool",resource_group="rg-shop",source="local_service_backend_pool_updater",subscription_id="sub"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "cloudprovider_azure_op_failure_count"); err != nil {
		t.Error(err)
	}
	if n, sum := histogram(t, reg, "cloudprovider_azure_op_duration_seconds"); n != 4 || sum != 9 {
		t.Errorf("%d operations of %v s in all, want 4 of 9 s", n, sum)
	}
	if n, sum := histogram(t, reg, "weir_taint_to_down_seconds"); n != 1 || sum != 7 {
		t.Errorf("%d times from a taint of %v s in all, want one of 7 s", n, sum)
	}
}

func TestPoolsAreCountedByState(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.RegisterStates(reg, func() map[string]int { return map[string]int{"InSync": 3, "Failed": 0} })
	want := `
# HELP weir_backendpools BackendPools by the reason of their Synced condition; all reasons but InSync are out of sync.
# TYPE weir_backendpools gauge
weir_backendpools{state="Failed"} 0
weir_backendpools{state="InSync"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_backendpools"); err != nil {
		t.Error(err)
	}
}

// The series must exist at 0: rate() would miss a first failure in a new series.
func TestTheFailuresBeginAtZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.NewPoolUpdates(reg, pool.LoadBalancer).Report(updater.Report{Pool: pool, Outcome: diff.Unchanged})
	if n := testutil.CollectAndCount(reg, "cloudprovider_azure_op_failure_count"); n != 1 {
		t.Errorf("%d series after the first attempt", n)
	}
}

func histogram(t *testing.T, reg *prometheus.Registry, name string) (count uint64, sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			h := family.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	return 0, 0
}

type lanes struct{ backlog updater.Backlog }

func (l lanes) Backlog() updater.Backlog     { return l.backlog }
func (lanes) CountAvoided() (uint64, uint64) { return 5, 8 }

func TestWorkersAreReadOnCollection(t *testing.T) {
	reg := prometheus.NewRegistry()
	updates := metrics.NewPoolUpdates(reg, pool.LoadBalancer)
	metrics.RegisterWorkers(reg, lanes{updater.Backlog{Operations: 7, Parked: 2, OldestQueuedAt: time.Now().Add(-time.Hour)}})
	updates.Report(updater.Report{Pool: pool, Outcome: diff.Unchanged})
	want := `
# HELP weir_pool_operations_waiting Queued operations of backend pools, delayed ones included.
# TYPE weir_pool_operations_waiting gauge
weir_pool_operations_waiting 7
# HELP weir_pools_parked Backend pools that wait for a Retry-After of Azure.
# TYPE weir_pools_parked gauge
weir_pools_parked 2
# HELP weir_pool_writes_avoided_total Changes that needed no write of their own: an equal one was queued, the pool was known to be in sync, or a read showed it.
# TYPE weir_pool_writes_avoided_total counter
weir_pool_writes_avoided_total{by="coalesced"} 5
weir_pool_writes_avoided_total{by="known"} 8
weir_pool_writes_avoided_total{by="unchanged"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_pool_operations_waiting", "weir_pools_parked", "weir_pool_writes_avoided_total"); err != nil {
		t.Error(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "weir_pool_oldest_operation_seconds" })
	if age := families[i].GetMetric()[0].GetGauge().GetValue(); age < 3600 || age > 3700 {
		t.Errorf("the oldest operation is %v s old, want an hour", age)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "cloudprovider_azure_") { // these names predate the rule
			t.Errorf("lint: %s: %s", p.Metric, p.Text)
		}
	}
}

func TestNodesThatDrainAreCountedByReason(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.RegisterDraining(reg, func() map[string]int { return map[string]int{"spot-eviction": 2, "out-of-service": 0} })
	want := `
# HELP weir_nodes_draining Nodes that receive no new flows, by taint; a node with two such taints counts twice.
# TYPE weir_nodes_draining gauge
weir_nodes_draining{reason="out-of-service"} 0
weir_nodes_draining{reason="spot-eviction"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

// However many subscriptions and groups BackendPools name, the number of series is constant.
func TestSeriesAfterChurn(t *testing.T) {
	reg := prometheus.NewRegistry()
	updates := metrics.NewPoolUpdates(reg, pool.LoadBalancer)
	count := func() (n int) {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			n += len(family.GetMetric())
		}
		return n
	}
	report := func(subscription, group string) {
		at := lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: group, Name: "kubernetes"}, Name: "web"}
		service := []schedule.ServiceName{{Namespace: "shop", Name: group}}
		updates.Report(updater.Report{Pool: at, Outcome: diff.Written, Updated: service, AdminAttempted: true})
		updates.Report(updater.Report{Pool: at, Outcome: diff.Terminal, Failed: service, Fault: &armerror.Fault{Class: armerror.Terminal, Reason: "refused"}})
	}
	report("sub", "rg-shop")
	report("sub", "other-group")
	report("other-sub", "rg-shop")
	report("other-sub", "other-group")
	before := count()
	for i := range 5000 {
		report(fmt.Sprintf("%08x-0000-0000-0000-000000000000", i), fmt.Sprint("rg-", i))
		report("SUB", "RG-SHOP")
	}
	if after := count(); after != before {
		t.Errorf("%d series have become %d", before, after)
	}
}
