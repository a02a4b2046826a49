// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// Two metrics keep the names and labels of cloud-provider-azure for existing dashboards. For membership
// changes they count only final outcomes.
const (
	operationRequest = "services_local_update_backend_pool"
	operationSource  = "local_service_backend_pool_updater"
)

// Changes of admin states have their own labels. They are retried forever, so each attempt counts.
const (
	adminRequest = "loadbalancer_adminstate_update_backend_pool"
	adminSource  = "admin_state_controller"
)

// otherLabel replaces subscriptions and groups other than those of azure.json: users choose them, and a series
// is never removed.
const otherLabel = "other"

// PoolUpdates measures pool update attempts.
type PoolUpdates struct {
	// own is the resource group in azure.json.
	own         lb.LoadBalancerID
	duration    *prometheus.HistogramVec
	failures    *prometheus.CounterVec
	retries     *prometheus.CounterVec
	read        prometheus.Counter
	drift       *prometheus.CounterVec
	lag         prometheus.Histogram
	taintToDown prometheus.Histogram
	conflicts   *prometheus.CounterVec

	throttling throttling
}

// NewPoolUpdates registers the metrics of attempts. Only the subscription and resource group of own become
// labels.
func NewPoolUpdates(reg prometheus.Registerer, own lb.LoadBalancerID) *PoolUpdates {
	labels := []string{"request", "resource_group", "subscription_id", "source"}
	p := &PoolUpdates{
		own: own,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "cloudprovider_azure_op_duration_seconds",
			Help:    "Duration of the attempts that ended a change of a Service's pool, as success or as failure; retried attempts are not counted. Of admin states: of each attempt.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1200},
		}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cloudprovider_azure_op_failure_count",
			Help: "Attempts that ended a change of a Service's pool as failure: not retriable, or out of retries. Of admin states: attempts that failed.",
		}, labels),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_pool_retries_total",
			Help: "Failed attempts to update a pool that are retried, by cause.",
		}, []string{"reason"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_endpoint_to_pool_seconds",
			Help:    "Time from a change of endpoints, as the controller saw it, until Azure showed the desired pool.",
			Buckets: []float64{.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600, 1800, 3600},
		}),
		taintToDown: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_taint_to_down_seconds",
			Help:    "Time from the taint of a node, as the controller saw it, until Azure showed the node Down in a pool.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800},
		}),
	}
	p.drift = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_pool_drift_checks_total",
		Help: "Pools that were read though nothing changed, by what came of it: Unchanged, Written or a failure.",
	}, []string{"outcome"})
	p.conflicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_etag_conflicts_total",
		Help: "Attempts whose write got 412 because another client had written since the read, by resource and by the result of the immediate second try: settled, or failed.",
	}, []string{"resource", "outcome"})
	reg.MustRegister(p.duration, p.failures, p.retries, p.lag, p.taintToDown, p.drift, p.conflicts)
	p.throttling = newThrottling(reg, labels)
	p.read = prometheus.NewCounter(avoidedOpts("unchanged"))
	reg.MustRegister(p.read)
	return p
}

func avoidedOpts(by string) prometheus.CounterOpts {
	return prometheus.CounterOpts{
		Name:        "weir_pool_writes_avoided_total",
		Help:        "Changes that needed no write of their own: an equal one was queued, the pool was known to be in sync, or a read showed it.",
		ConstLabels: prometheus.Labels{"by": by},
	}
}

// Report measures one attempt. Safe for concurrent use.
func (p *PoolUpdates) Report(r updater.Report) {
	switch r.Outcome {
	case diff.Written:
		if !r.ChangedAt.IsZero() {
			p.lag.Observe(r.At.Sub(r.ChangedAt).Seconds())
		}
	case diff.Unchanged:
		if !r.Resync {
			p.read.Inc()
		}
	case diff.Retriable:
		if r.WillRetry && !r.Admin {
			p.retries.WithLabelValues(r.Fault.Reason).Inc()
		}
	}
	if r.HadConflict {
		p.CountConflict("pool", r.Outcome == diff.Written || r.Outcome == diff.Unchanged)
	}
	if r.Resync {
		p.drift.WithLabelValues(string(r.Outcome)).Inc()
	}
	p.observeFinal(r)
	p.observeAdminState(r)
}

// CountConflict counts a write that was repeated after a 412. Safe for concurrent use.
func (p *PoolUpdates) CountConflict(resource string, settled bool) {
	p.conflicts.WithLabelValues(resource, map[bool]string{true: "settled", false: "failed"}[settled]).Inc()
}

// RegisterStates registers the gauge of BackendPools by state.
func RegisterStates(reg prometheus.Registerer, states func() map[string]int) {
	reg.MustRegister(countGauge{states, prometheus.NewDesc("weir_backendpools",
		"BackendPools by the reason of their Synced condition; all reasons but InSync are out of sync.", []string{"state"}, nil)})
}

// RegisterServices registers the gauge of Services by state.
func RegisterServices(reg prometheus.Registerer, states func() map[string]int) {
	reg.MustRegister(countGauge{states, prometheus.NewDesc("weir_services",
		"Services that have a load balancer of Weir's, or are to have one, by how far it is.", []string{"state"}, nil)})
}

// RegisterPrivateLinks registers the gauge of connections to Private Link Services.
func RegisterPrivateLinks(reg prometheus.Registerer, byState func() map[string]int) {
	reg.MustRegister(countGauge{byState, prometheus.NewDesc("weir_private_link_connections",
		"Connections of private endpoints to the Private Link Services of Services, by state: pending, approved, rejected or other.", []string{"state"}, nil)})
}

// RegisterConflicts registers the gauge of objects whose changes another controller keeps reverting.
func RegisterConflicts(reg prometheus.Registerer, byKind func() map[string]int) {
	reg.MustRegister(countGauge{byKind, prometheus.NewDesc("weir_contested",
		"Services and BackendPools whose resources in Azure another client keeps reverting.", []string{"kind"}, nil)})
}

// RegisterSerialUpdates registers the gauge of load balancers where pool writes do not overlap.
func RegisterSerialUpdates(reg prometheus.Registerer, count func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_load_balancers_serial",
		Help: "Load balancers where each pool write waits for the one before, because Azure rejected or discarded one that overlapped, or by azure.json.",
	}, func() float64 { return float64(count()) }))
}

// RegisterDraining registers the gauge of draining nodes.
func RegisterDraining(reg prometheus.Registerer, byReason func() map[string]int) {
	reg.MustRegister(countGauge{byReason, prometheus.NewDesc("weir_nodes_draining",
		"Nodes that receive no new flows, by taint; a node with two such taints counts twice.", []string{"reason"}, nil)})
}

// RegisterRetainedMembers registers the gauge of members that are retained because watches are stale.
func RegisterRetainedMembers(reg prometheus.Registerer, count func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_members_held",
		Help: "Members that the cluster no longer has in their pools, and that remain until the watches of the API server are in sync again.",
	}, func() float64 { return float64(count()) }))
}

// RegisterLeftovers registers the gauge of orphaned Azure resources of Services.
func RegisterLeftovers(reg prometheus.Registerer, count func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_leftovers",
		Help: "Parts of load balancers and public IPs that are named as a Service's which the cluster does not have, when the leader looked last.",
	}, func() float64 { return float64(count()) }))
}

type countGauge struct {
	counts func() map[string]int
	desc   *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (g countGauge) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

// Collect implements prometheus.Collector.
func (g countGauge) Collect(ch chan<- prometheus.Metric) {
	for label, n := range g.counts() {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), label)
	}
}

// observeFinal observes attempts that ended a change; not retries, waits or changes without an object.
func (p *PoolUpdates) observeFinal(r updater.Report) {
	labels := p.labelsOf(r.Pool, operationRequest, operationSource)
	failures := p.failures.WithLabelValues(labels...) // create the series at 0, which rate() needs
	if len(r.Updated) == 0 && len(r.Failed) == 0 {
		return
	}
	p.duration.WithLabelValues(labels...).Observe(r.Duration.Seconds())
	if len(r.Failed) > 0 {
		failures.Inc()
	}
}

// observeAdminState observes each attempt to change admin states that had something to do.
func (p *PoolUpdates) observeAdminState(r updater.Report) {
	if !r.AdminAttempted {
		return
	}
	labels := p.labelsOf(r.Pool, adminRequest, adminSource)
	failures := p.failures.WithLabelValues(labels...)
	p.throttling.observeAttempt(r, labels)
	failed := r.Outcome == diff.Retriable || r.Outcome == diff.Terminal
	if failed {
		failures.Inc()
	}
	if failed || r.Outcome == diff.Written {
		p.duration.WithLabelValues(labels...).Observe(r.Duration.Seconds())
	}
	if len(r.MarkedDown) > 0 && !r.AdminSince.IsZero() {
		p.taintToDown.Observe(r.At.Sub(r.AdminSince).Seconds())
	}
}

func (p *PoolUpdates) labelsOf(pool lb.PoolID, request, source string) []string {
	where, group, subscription := pool.LoadBalancer, otherLabel, otherLabel
	if strings.EqualFold(where.SubscriptionID, p.own.SubscriptionID) {
		subscription = p.own.SubscriptionID
	}
	if strings.EqualFold(where.ResourceGroup, p.own.ResourceGroup) {
		group = strings.ToLower(p.own.ResourceGroup)
	}
	return []string{request, group, subscription, source}
}

// Workers is the state of the pool updater; see updater.Workers.
type Workers interface {
	Backlog() updater.Backlog
	CountAvoided() (coalesced, known uint64)
}

// RegisterWorkers registers the metrics of the pool updater's queue.
func RegisterWorkers(reg prometheus.Registerer, workers Workers) {
	gauge := func(name, help string, value func(updater.Backlog) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return value(workers.Backlog()) }))
	}
	gauge("weir_pool_operations_waiting", "Queued operations of backend pools, delayed ones included.",
		func(b updater.Backlog) float64 { return float64(b.Operations) })
	gauge("weir_pools_parked", "Backend pools that wait for a Retry-After of Azure.",
		func(b updater.Backlog) float64 { return float64(b.Parked) })
	gauge("weir_pool_oldest_operation_seconds", "Age of the oldest operation that is not settled, one under way included; 0 if there is none.",
		func(b updater.Backlog) float64 {
			if b.OldestQueuedAt.IsZero() {
				return 0
			}
			return time.Since(b.OldestQueuedAt).Seconds()
		})
	counter := func(by string, value func(coalesced, known uint64) uint64) {
		reg.MustRegister(prometheus.NewCounterFunc(avoidedOpts(by), func() float64 { return float64(value(workers.CountAvoided())) }))
	}
	counter("coalesced", func(coalesced, _ uint64) uint64 { return coalesced })
	counter("known", func(_, known uint64) uint64 { return known })
}
