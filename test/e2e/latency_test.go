// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/armemu"
)

// BenchmarkTaintToWrite taints and untaints a node of a pool of twenty. It measures the time from
// the API request to the Azure write that sets or clears Down. Azure answers reads at once. Each
// iteration waits until the updater is idle, which polls one second after a write.
func BenchmarkTaintToWrite(b *testing.B) {
	l := newLab(b, armemu.Options{})
	l.pool("web")
	var nodes, ips []string
	for i := range 20 {
		ips = append(ips, fmt.Sprintf("10.0.0.%d", 10+i))
		nodes = append(nodes, l.node(fmt.Sprintf("n%d", i), ips[i]))
	}
	l.service("web", nodes...)
	l.controller("--leader-elect=false")
	l.becomes("web", ips...)
	l.expectEvents("web", "LoadBalancerBackendPoolUpdated")

	var took []time.Duration
	for b.Loop() {
		for i := range 60 {
			took = append(took, l.toggleTaint(nodes[0], i%2 == 0))
		}
	}
	slices.Sort(took)
	at := func(q float64) float64 {
		return float64(took[int(q*float64(len(took)-1))]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(0.5), "ms-p50")
	b.ReportMetric(at(0.9), "ms-p90")
	b.ReportMetric(at(0.99), "ms-p99")
	b.ReportMetric(at(1), "ms-max")
}

// idleDelay is the time until the updater noticed the end of its write.
const idleDelay = 1500 * time.Millisecond

// toggleTaint adds or removes a taint and returns the time until a write reached Azure.
func (l *lab) toggleTaint(name string, leaves bool) time.Duration {
	l.t.Helper()
	var node corev1.Node
	l.must(l.cluster.Get(l.t.Context(), key("", name), &node))
	node.Spec.Taints = nil
	if leaves {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
	}
	writes := func() []armemu.Call {
		return l.emulator.Calls(func(c armemu.Call) bool { return c.Kind == armemu.KindPut })
	}
	before, began := len(writes()), time.Now()
	l.must(l.cluster.Update(l.t.Context(), &node))
	deadline := began.Add(time.Minute)
	for {
		if total := writes(); len(total) > before {
			time.Sleep(idleDelay)
			return total[before].Time.Sub(began)
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("no write %s after the taint of %s", time.Since(began), name)
		}
		time.Sleep(time.Millisecond)
	}
}
