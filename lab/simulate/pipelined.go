// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"

	"weir.dev/weir/lab/scenario"
)

// Pipelined is Schedule for a world where many pools of one load balancer change at once and pool
// writes overlap, as far as Azure allows.
func Pipelined(seed uint64, n int) []scenario.Step {
	w := newWorld(seed, 1)
	lines := w.buildPipelined()
	happens := append(w.choose(), happening{"burst", 90, "all Services run on other nodes, and something happens meanwhile", burst})
	return w.schedule(lines, happens, n)
}

// buildPipelined returns the steps that create the world.
func (w *world) buildPipelined() []string {
	var text strings.Builder
	fmt.Fprintf(&text, "cluster retries=%d drift=%s%s", w.r.IntN(4), oneOf(w, "10m", "5m"), w.azure())
	text.WriteString(oneOf(w, " pipelined", " pipelined", " finds-out"))
	if w.r.IntN(4) == 0 {
		w.term = oneOf(w, 15, 15, 60)
		fmt.Fprintf(&text, " lease=%ds", w.term)
	}
	if w.r.IntN(4) > 0 {
		text.WriteString(" admin")
	}
	if w.r.IntN(6) == 0 {
		text.WriteString(oneOf(w, " whole", " auto"))
	}
	if w.r.IntN(4) == 0 {
		w.replicas = true
		text.WriteString(" replicas=2")
	}
	if w.r.IntN(8) == 0 {
		fmt.Fprintf(&text, " share=%d", 1+w.r.IntN(2))
	}
	w.nodes = 3 + w.r.IntN(4)
	fmt.Fprintf(&text, "\nnodes %d\nlb lb1 subscription=s1", w.nodes)
	w.balances, w.sub["lb1"] = []string{"lb1"}, "s1"
	if w.r.IntN(5) == 0 {
		text.WriteString("\nlb lb2 subscription=s1")
		w.balances, w.sub["lb2"] = append(w.balances, "lb2"), "s1"
	}
	for i := range 3 + w.r.IntN(5) {
		w.addPool(&text, string(rune('a'+i)))
	}
	for i, p := range w.pools {
		name := fmt.Sprintf("s%d", i+1)
		w.names = append(w.names, name)
		w.services[name], w.owner[p] = []string{p}, name
		text.WriteString("\n" + w.make(name))
	}
	return []string{text.String()}
}

// burst moves all Services to other nodes, some twice, while a write or the process fails.
func burst(w *world) []string {
	there := w.present()
	if len(there) == 0 {
		return nil
	}
	var lines []string
	switch w.r.IntN(8) {
	case 0, 1, 2:
		at := oneOf(w, "any", "any", "PUT", "poll", "result", "record", "report")
		lines = one("kill%s at=%s nth=%d%s", oneOf(w, "", "", " leader"), at, 1+w.r.IntN(3*len(there)+2), oneOf(w, "", " after"))
	case 3:
		lines = oneOf(w, fail, throttle, loseAnswer)(w)
	case 4:
		lines = one("slow on=PUT lb=lb1 by=%dms times=%d", 100+w.r.IntN(2000), 1+w.r.IntN(4))
	}
	lines = append(lines, w.scale(there, w.someNodes()), fmt.Sprintf("clock %dms", 250+w.r.IntN(oneOf(w, 400, 4000))))
	switch w.r.IntN(5) {
	case 0:
		lines = append(lines, otherWriter(w)...)
	case 1:
		lines = append(lines, w.scale(there[:1+w.r.IntN(len(there))], w.someNodes()))
	case 2:
		lines = append(lines, taint(w)...)
	}
	return append(lines, fmt.Sprintf("clock %ds", 1+w.r.IntN(20)), "restart dead")
}
