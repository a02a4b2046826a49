// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/pool/updater"
)

// throttling has two metrics of cloud-provider-azure: requests throttled by Azure, and requests held back
// locally. Weir counts changes of admin states, which have no retry limit that would show it.
type throttling struct{ throttled, limited *prometheus.CounterVec }

func newThrottling(reg prometheus.Registerer, labels []string) throttling {
	t := throttling{
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cloudprovider_azure_api_request_throttled_count",
			Help: "Attempts to set admin states that Azure rejected with 429.",
		}, labels),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cloudprovider_azure_api_request_ratelimited_count",
			Help: "Changes of admin states that were not sent because a gate was closed or a Retry-After had not passed.",
		}, labels),
	}
	reg.MustRegister(t.throttled, t.limited)
	return t
}

// delayedReasons are fault reasons of requests that were not sent.
var delayedReasons = map[string]bool{"gate_closed": true, "retry_after": true}

// observeAttempt counts an attempt to change admin states. It creates both series at 0.
func (t throttling) observeAttempt(r updater.Report, labels []string) {
	throttled, limited := t.throttled.WithLabelValues(labels...), t.limited.WithLabelValues(labels...)
	switch {
	case r.Fault == nil:
	case r.Fault.Reason == "throttled":
		throttled.Inc()
	case delayedReasons[r.Fault.Reason]:
		limited.Inc()
	}
}

// ReportWait counts a change of admin states that is held back before any attempt. Safe for concurrent use.
func (p *PoolUpdates) ReportWait(w updater.Waiting) {
	if w.Admin && (w.Cause == updater.CauseGate || w.Cause == updater.CauseRetryAfter) {
		p.throttling.limited.WithLabelValues(p.labelsOf(w.Pool, adminRequest, adminSource)...).Inc()
	}
}
