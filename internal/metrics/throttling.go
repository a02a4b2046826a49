// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/poolupdate"
)

// throttling are the two series of the Azure cloud provider that say how often its requests
// were too many: for Azure, or for a limit of its own. Weir has them for changes of admin
// states, which have no budget that would tell.
type throttling struct{ throttled, limited *prometheus.CounterVec }

func newThrottling(reg prometheus.Registerer, labels []string) throttling {
	t := throttling{
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cloudprovider_azure_api_request_throttled_count",
			Help: "Attempts to set admin states that Azure answered with 429.",
		}, labels),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cloudprovider_azure_api_request_ratelimited_count",
			Help: "How often a change of admin states was held back, nothing sent, because Azure had asked for patience: a gate was closed, or a Retry-After was not over.",
		}, labels),
	}
	reg.MustRegister(t.throttled, t.limited)
	return t
}

// heldBack are the reasons of failures with which a request did not leave.
var heldBack = map[string]bool{"gate_closed": true, "retry_after": true}

// observe counts an attempt at admin states. Both series are there, at 0, from the first one.
func (t throttling) observe(r poolupdate.Report, labels []string) {
	throttled, limited := t.throttled.WithLabelValues(labels...), t.limited.WithLabelValues(labels...)
	switch {
	case r.Fault == nil:
	case r.Fault.Reason == "throttled":
		throttled.Inc()
	case heldBack[r.Fault.Reason]:
		limited.Inc()
	}
}

// Wait counts a change of admin states that waits for Azure's patience before any attempt.
// It may be called from several goroutines.
func (p *PoolUpdates) Wait(w poolupdate.Waiting) {
	if w.Admin && (w.Cause == poolupdate.CauseGate || w.Cause == poolupdate.CauseRetryAfter) {
		p.throttling.limited.WithLabelValues(p.labelsOf(w.Pool, adminRequest, adminSource)...).Inc()
	}
}
