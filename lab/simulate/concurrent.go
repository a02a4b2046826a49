// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"

	"weir.dev/weir/lab/scenario"
)

// ConcurrentSchedule is Schedule for many pools of one load balancer with overlapping writes.
func ConcurrentSchedule(seed uint64, n int) []scenario.Step {
	w := newWorld(seed, 1)
	lines := w.buildConcurrentSetup()
	happens := append(w.chooseKinds(), eventKind{"burst", 90, "all Services run on other nodes, and something happens meanwhile", burstEvent})
	return w.appendEvents(lines, happens, n)
}

func (sb *scheduleBuilder) buildConcurrentSetup() []string {
	var text strings.Builder
	fmt.Fprintf(&text, "cluster retries=%d drift=%s%s", sb.r.IntN(4), oneOf(sb, "10m", "5m"), sb.azureOptions())
	text.WriteString(" pipelined")
	if sb.r.IntN(4) == 0 {
		sb.leaseSeconds = oneOf(sb, 15, 15, 60)
		fmt.Fprintf(&text, " lease=%ds", sb.leaseSeconds)
	}
	if sb.r.IntN(4) > 0 {
		text.WriteString(" admin")
	}
	if sb.r.IntN(4) == 0 {
		sb.replicas = true
		text.WriteString(" replicas=2")
	}
	if sb.r.IntN(8) == 0 {
		fmt.Fprintf(&text, " share=%d", 1+sb.r.IntN(2))
	}
	sb.nodes = 3 + sb.r.IntN(4)
	fmt.Fprintf(&text, "\nnodes %d\nlb lb1 subscription=s1", sb.nodes)
	sb.loadBalancers, sb.subscriptions["lb1"] = []string{"lb1"}, "s1"
	if sb.r.IntN(5) == 0 {
		text.WriteString("\nlb lb2 subscription=s1")
		sb.loadBalancers, sb.subscriptions["lb2"] = append(sb.loadBalancers, "lb2"), "s1"
	}
	for i := range 3 + sb.r.IntN(5) {
		sb.addPool(&text, string(rune('a'+i)))
	}
	for i, p := range sb.pools {
		name := fmt.Sprintf("s%d", i+1)
		sb.serviceNames = append(sb.serviceNames, name)
		sb.services[name], sb.owner[p] = []string{p}, name
		text.WriteString("\n" + sb.serviceStep(name))
	}
	return []string{text.String()}
}

func burstEvent(w *scheduleBuilder) []string {
	there := w.existingServices()
	if len(there) == 0 {
		return nil
	}
	var lines []string
	switch w.r.IntN(8) {
	case 0, 1, 2:
		at := oneOf(w, "any", "any", "PUT", "poll", "result", "record", "report")
		lines = oneEvent("kill%s at=%s nth=%d%s", oneOf(w, "", "", " leader"), at, 1+w.r.IntN(3*len(there)+2), oneOf(w, "", " after"))
	case 3:
		lines = oneOf(w, failEvent, throttleEvent, responseLossEvent)(w)
	case 4:
		lines = oneEvent("slow on=PUT lb=lb1 by=%dms times=%d", 100+w.r.IntN(2000), 1+w.r.IntN(4))
	}
	lines = append(lines, w.scaleStep(there, w.randomNodes()), fmt.Sprintf("clock %dms", 250+w.r.IntN(oneOf(w, 400, 4000))))
	switch w.r.IntN(5) {
	case 0:
		lines = append(lines, otherWriterEvent(w)...)
	case 1:
		lines = append(lines, w.scaleStep(there[:1+w.r.IntN(len(there))], w.randomNodes()))
	case 2:
		lines = append(lines, taintEvent(w)...)
	}
	return append(lines, fmt.Sprintf("clock %ds", 1+w.r.IntN(20)), "restart dead")
}
