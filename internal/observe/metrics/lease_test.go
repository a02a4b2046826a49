// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weir.dev/weir/internal/observe/metrics"
)

type lease struct {
	held     bool
	refusals uint64
}

func (l *lease) IsHolder() bool       { return l.held }
func (l *lease) FailureCount() uint64 { return l.refusals }

func TestLeaseIsReadOnCollection(t *testing.T) {
	reg := prometheus.NewRegistry()
	l := &lease{held: true}
	metrics.RegisterLease(reg, l)
	const series = `
# HELP weir_resource_lease_held 1 while the resource lease is ours, 0 while it is not.
# TYPE weir_resource_lease_held gauge
weir_resource_lease_held %h
# HELP weir_resource_lease_refusals_total How often the resource lease was refused to us, by another holder or by an error, or lost.
# TYPE weir_resource_lease_refusals_total counter
weir_resource_lease_refusals_total %r
`
	for _, current := range []struct {
		lease
		h, r string
	}{{lease{true, 0}, "1", "0"}, {lease{false, 3}, "0", "3"}} {
		*l = current.lease
		want := strings.NewReplacer("%h", current.h, "%r", current.r).Replace(series)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
