// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
)

// healthy is a healthy cluster: each series as a function of the minute.
var healthy = map[string]func(minute int) float64{
	`weir_build_info{version="v1",goversion="go1",goarch="amd64"}`: constant(1),
	`weir_provisioner_build_info{version="v1"}`:                    constant(1),
	`weir_backendpools_out_of_sync_oldest_seconds`:                 constant(40),
	`weir_services{state="ready"}`:                                 constant(9),
	`weir_services{state="failed"}`:                                constant(0),
	`weir_services{state="retained"}`:                              constant(0),
	`weir_contested{kind="Service"}`:                               constant(0),
	`weir_pool_oldest_operation_seconds`:                           constant(20),
	`weir_arm_calls_total{operation="put",status="200"}`:           increasing(60),
	`weir_arm_calls_total{operation="put",status="429"}`:           constant(3),
	`weir_arm_calls_total{operation="put",status="403"}`:           constant(1),
	`weir_arm_calls_total{operation="get",status="403"}`:           func(m int) float64 { return float64(m / 60) }, // quotas, hourly
	`weir_arm_calls_total{operation="get",status="0"}`:             increasing(2),
	`weir_resource_lease_refusals_total`:                           constant(4),
	`weir_machines{state="failed"}`:                                constant(0),
	`weir_leftovers`:                                               constant(0),
	`weir_limit_usage_ratio{resource="kubernetes",limit="rules"}`:  constant(0.79),
	`weir_endpoint_to_pool_seconds_bucket{le="120.0"}`:             increasing(100),
	`weir_endpoint_to_pool_seconds_count`:                          increasing(100),
}

func constant(value float64) func(int) float64 { return func(int) float64 { return value } }
func increasing(by float64) func(int) float64  { return func(m int) float64 { return by * float64(m) } }

// stopsAt returns a series that is 1 until minute at, then stale.
func stopsAt(at int) func(int) float64 {
	return func(minute int) float64 {
		if minute < at {
			return 1
		}
		return math.Float64frombits(value.StaleNaN)
	}
}

// absent marks a series that does not exist.
var absent func(int) float64

// runRules evaluates the rules once per minute with the changed series, and returns, for each alert firing at
// the end, the minute in which it started.
func runRules(t *testing.T, minutes int, changed map[string]func(int) float64) map[string]int {
	t.Helper()
	p, rules := newPrometheus(t), loadRules(t)
	functions := map[string]func(int) float64{}
	for _, from := range []map[string]func(int) float64{healthy, changed} {
		for name, value := range from {
			functions[name] = value
		}
	}
	since := map[string]int{}
	for minute := range minutes {
		at := time.Unix(1_000_000, 0).Add(time.Duration(minute) * time.Minute)
		for name, value := range functions {
			if value == nil {
				continue
			}
			l, err := promQL.ParseMetric(name)
			if err != nil {
				t.Fatal(err)
			}
			p.add(l, at, value(minute))
		}
		firing := p.evaluate(rules, at)
		for _, r := range rules {
			if _, fired := since[r.Alert]; !firing[r.Alert] {
				delete(since, r.Alert)
			} else if !fired {
				since[r.Alert] = minute
			}
		}
	}
	return since
}

func TestNoAlertsWhenHealthy(t *testing.T) {
	if got := runRules(t, 90, nil); len(got) > 0 {
		t.Errorf("fires: %v", got)
	}
	// Before the first endpoint change, and without optional series.
	bare := map[string]func(int) float64{}
	for name := range healthy {
		if !strings.HasPrefix(name, "weir_build_info") {
			bare[name] = absent
		}
	}
	if got := runRules(t, 90, bare); len(got) > 0 {
		t.Errorf("without series: %v", got)
	}
}

// Each alert fires alone, on its condition and after its "for" duration.
func TestAlertsFire(t *testing.T) {
	late := func(percent float64) map[string]func(int) float64 {
		return map[string]func(int) float64{
			`weir_endpoint_to_pool_seconds_bucket{le="120.0"}`: increasing(100 - percent),
		}
	}
	old := late(20) // le format before Prometheus 3
	old[`weir_endpoint_to_pool_seconds_bucket{le="120"}`] = increasing(80)
	old[`weir_endpoint_to_pool_seconds_bucket{le="120.0"}`] = absent
	single := func(name string, value func(int) float64) map[string]func(int) float64 {
		return map[string]func(int) float64{name: value}
	}
	tests := []struct {
		by    map[string]func(int) float64
		fires string
		after int // minutes, about the alert's "for"
		slow  bool
	}{
		{single(`weir_build_info{version="v1",goversion="go1",goarch="amd64"}`, absent), "WeirDown", 5, false},
		{single(`weir_provisioner_build_info{version="v1"}`, stopsAt(30)), "WeirProvisionerDown", 35, false},
		{single(`weir_backendpools_out_of_sync_oldest_seconds`, increasing(60)), "WeirPoolOutOfSync", 21, false},
		{single(`weir_services{state="failed"}`, constant(1)), "WeirServiceWithoutLoadBalancer", 15, false},
		{single(`weir_services{state="deferred"}`, constant(1)), "WeirServiceWithoutLoadBalancer", 15, false},
		{single(`weir_services{state="rejected"}`, constant(1)), "WeirServiceWithoutLoadBalancer", 15, false},
		{single(`weir_services{state="retained"}`, constant(1)), "WeirServiceHeld", 15, false},
		{single(`weir_contested{kind="BackendPool"}`, constant(1)), "WeirContested", 10, false},
		{single(`weir_pool_oldest_operation_seconds`, increasing(60)), "WeirOperationsStuck", 21, false},
		{single(`weir_arm_calls_total{operation="put",status="429"}`, increasing(1)), "WeirThrottled", 16, false},
		{single(`weir_arm_calls_total{operation="put",status="403"}`, increasing(1)), "WeirAzureRefuses", 11, false},
		{single(`weir_arm_calls_total{operation="get",status="0"}`, increasing(80)), "WeirAzureUnreachable", 11, false},
		{single(`weir_arm_calls_total{operation="get",status="503"}`, increasing(80)), "WeirAzureUnreachable", 11, false},
		{single(`weir_resource_lease_refusals_total`, increasing(2)), "WeirResourceLeaseRefused", 16, false},
		{single(`weir_machines{state="failed"}`, constant(2)), "WeirMachinesFailed", 15, false},
		{single(`weir_limit_usage_ratio{resource="kubernetes",limit="rules"}`, constant(0.8)), "WeirLimitNear", 15, false},
		{single(`weir_limit_usage_ratio{resource="region eastus",limit="public IPs"}`, constant(0.8)), "WeirLimitNear", 15, false},
		{single(`weir_leftovers`, constant(1)), "WeirLeftovers", 60, false},
		{late(8), "WeirEndpointToPoolSlow", 16, true},
		{late(20), "WeirEndpointToPoolFast", 3, true}, // the slow alert fires too
		{old, "WeirEndpointToPoolFast", 3, true},
	}
	tested := []string{}
	for _, tt := range tests {
		tested = append(tested, tt.fires)
		t.Run(tt.fires, func(t *testing.T) {
			got := runRules(t, 90, tt.by)
			since, fires := got[tt.fires]
			if tt.slow && tt.fires != "WeirEndpointToPoolSlow" {
				delete(got, "WeirEndpointToPoolSlow")
			}
			if !fires || len(got) != 1 || since != tt.after {
				t.Errorf("got %v, want %s from minute %d on", got, tt.fires, tt.after)
			}
		})
	}
	for _, r := range loadRules(t) {
		if r.Alert != "" && !slices.Contains(tested, r.Alert) {
			t.Errorf("%s is not tested", r.Alert)
		}
	}
}

// Each alert has a runbook that quotes its expression, and each runbook has an alert.
func TestAlertsHavePages(t *testing.T) {
	want := map[string]bool{}
	for _, r := range loadRules(t) {
		if r.Alert == "" {
			continue
		}
		page := "docs/runbooks/" + r.Alert + ".md"
		want[page] = true
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Annotations["runbook_url"] != "https://weir.dev/weir/"+page || r.Annotations["summary"] == "" {
			t.Errorf("%s: annotations %v, want a summary and the page's URL", r.Alert, r.Annotations)
		}
		head := fmt.Sprintf("# %s\n\n`%s` for %s; %s.\n", r.Alert, strings.Join(strings.Fields(r.Expr), " "), r.For, r.Labels["severity"])
		if !strings.HasPrefix(string(text), head) {
			t.Errorf("%s begins with something else than\n%s", page, head)
		}
		for _, section := range []string{"What it means", "Since when it matters", "What to look at", "What helps"} {
			if !strings.Contains(string(text), "\n## "+section+"\n\n") {
				t.Errorf("%s has no section %q", page, section)
			}
		}
	}
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(pages) != len(want) {
		t.Errorf("%d pages for %d alerts: %v %v", len(pages), len(want), pages, err)
	}
}
