// SPDX-License-Identifier: Apache-2.0

package main

// row is a heading and its panels, side by side.
type row struct {
	title  string
	panels []panel
}

type panel struct {
	title, description string
	// kind is a Grafana panel type: stat, timeseries or table.
	kind string
	// unit is a Grafana unit: s, short, reqps or percentunit.
	unit    string
	queries []query
}

type query struct{ expr, legend string }

const (
	statPanel, timeSeriesPanel, tablePanel          = "stat", "timeseries", "table"
	unitSeconds, unitNumber, unitRate, unitFraction = "s", "short", "reqps", "percentunit"
)

// dashboardRows are ordered from overview to details.
var dashboardRows = []row{
	{"Is all in sync?", []panel{
		{"Out of sync for longest", "For how long the BackendPool that has waited longest has been out of sync.", statPanel, unitSeconds,
			[]query{{`max(weir_backendpools_out_of_sync_oldest_seconds)`, ""}}},
		{"Services without their load balancer", "Refused ones have to be mended; failed ones are tried again.", statPanel, unitNumber,
			[]query{{`sum(weir_services{state=~"rejected|failed|deferred"})`, ""}}},
		{"Contested", "What another client keeps undoing in Azure.", statPanel, unitNumber,
			[]query{{`sum(weir_contested)`, ""}}},
		{"Late changes, 30 days", "Of all changes of endpoints, those that took more than two minutes to reach their pool; the objective is 1 %.", statPanel, unitFraction,
			[]query{{`weir:endpoint_to_pool_late:ratio30d`, ""}}},
		{"Running", "Replicas by version.", statPanel, unitNumber,
			[]query{{`count by (version) (weir_build_info)`, "{{version}}"}}},
	}},
	{"What is out of sync", []panel{
		{"BackendPools by state", "Pools in sync are left out.", timeSeriesPanel, unitNumber,
			[]query{{`sum by (state) (weir_backendpools{state!="InSync"}) > 0`, "{{state}}"}}},
		{"The pools that have waited longest", "weir explain pool NAME says why.", tablePanel, unitSeconds,
			[]query{{`topk(20, max by (namespace, name, state) (weir_backendpool_out_of_sync_seconds))`, ""}}},
		{"Services by state", "Ready ones are left out.", timeSeriesPanel, unitNumber,
			[]query{{`sum by (state) (weir_services{state!="ready"}) > 0`, "{{state}}"}}},
	}},
	{"How fast changes arrive", []panel{
		{"Endpoint to pool", "From a change of endpoints until Azure shows it.", timeSeriesPanel, unitSeconds, []query{
			{`histogram_quantile(0.5, sum by (le) (rate(weir_endpoint_to_pool_seconds_bucket[$__rate_interval])))`, "half"},
			{`histogram_quantile(0.99, sum by (le) (rate(weir_endpoint_to_pool_seconds_bucket[$__rate_interval])))`, "99 in 100"},
		}},
		{"Oldest change that waits", "An operation under way included.", timeSeriesPanel, unitSeconds,
			[]query{{`max(weir_pool_oldest_operation_seconds)`, "oldest"}}},
		{"Changes that wait", "Parked ones wait because Azure asked for patience.", timeSeriesPanel, unitNumber, []query{
			{`sum(weir_pool_operations_waiting)`, "waiting"},
			{`sum(weir_pools_parked)`, "parked pools"},
		}},
		{"Taint to Down", "From the taint of a node until Azure shows it Down.", timeSeriesPanel, unitSeconds,
			[]query{{`histogram_quantile(0.99, sum by (le) (rate(weir_taint_to_down_seconds_bucket[$__rate_interval])))`, "99 in 100"}}},
	}},
	{"Azure", []panel{
		{"Requests", "By operation; each retry and poll is one.", timeSeriesPanel, unitRate,
			[]query{{`sum by (operation) (rate(weir_arm_calls_total[$__rate_interval]))`, "{{operation}}"}}},
		{"Answers that are errors", "Status 0 is no answer.", timeSeriesPanel, unitRate,
			[]query{{`sum by (status) (rate(weir_arm_calls_total{status!~"2..|304|404|412"}[$__rate_interval])) > 0`, "{{status}}"}}},
		{"How long Azure takes", "Time to an answer, 99 in 100.", timeSeriesPanel, unitSeconds,
			[]query{{`histogram_quantile(0.99, sum by (le, operation) (rate(weir_arm_call_duration_seconds_bucket[$__rate_interval])))`, "{{operation}}"}}},
		{"Writes in five minutes", "What is spent, Weir's own share of the quota, and what is left of that.", timeSeriesPanel, unitNumber,
			[]query{{`max by (subscription, of) (weir_write_budget)`, "{{of}} {{subscription}}"}}},
	}},
	{"Load balancers", []panel{
		{"Limits of Azure", "The ten of which most is used.", timeSeriesPanel, unitFraction,
			[]query{{`topk(10, max by (resource, limit) (weir_limit_usage_ratio))`, "{{resource}}: {{limit}}"}}},
		{"Failed attempts", "Those that are followed by another, by what failed.", timeSeriesPanel, unitRate,
			[]query{{`sum by (reason) (rate(weir_pool_retries_total[$__rate_interval])) > 0`, "{{reason}}"}}},
		{"Nodes that drain", "By reason.", timeSeriesPanel, unitNumber,
			[]query{{`max by (reason) (weir_nodes_draining)`, "{{reason}}"}}},
		{"Left in Azure", "Parts that have lost their Service.", timeSeriesPanel, unitNumber,
			[]query{{`max(weir_leftovers)`, "leftovers"}}},
	}},
}
