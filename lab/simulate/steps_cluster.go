// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"
)

// Steps of the cluster and the process.

func scale(w *world) []string {
	there := w.present()
	if len(there) == 0 {
		return nil
	}
	names := []string{oneOf(w, there...)}
	if w.r.IntN(4) == 0 {
		names = there
	}
	return one("%s", w.scale(names, w.someNodes()))
}

// scale returns a step that moves Services to these nodes.
func (w *world) scale(services []string, nodes string) string {
	for _, s := range services {
		w.placed[s] = nodes
	}
	return fmt.Sprintf("scale %s nodes=(%s)", strings.Join(services, " "), nodes)
}

// turn toggles a state and returns the step for it.
func turn(is map[string]bool, what, begin, end string) []string {
	is[what] = !is[what]
	if is[what] {
		return one("%s", begin)
	}
	return one("%s", end)
}

func nodeLost(w *world) []string {
	n := w.node()
	return turn(w.gone, n, "node-lost "+n, "node-lost "+n+" back")
}

func exclude(w *world) []string {
	n := w.node()
	return turn(w.ill, n, "exclude "+n, "exclude "+n+" end")
}

// taint taints one node, several together, or one repeatedly.
func taint(w *world) []string {
	switch n := w.node(); w.r.IntN(5) {
	case 0:
		var steps []string
		for range 5 {
			steps = append(steps, "taint "+n, "clock 100ms", "taint "+n+" end", "clock 100ms")
		}
		return steps[:len(steps)-2*w.r.IntN(2)]
	case 1:
		return one("taint n1 %s%s", oneOf(w, "n2", "n3", "n2 n3"), oneOf(w, "", " end", " announced"))
	default:
		return one("taint %s%s", n, oneOf(w, "", " announced", " end"))
	}
}

func selectNodes(w *world) []string {
	var ofNodes []string
	for _, p := range w.pools {
		if w.owner[p] == "" {
			ofNodes = append(ofNodes, p)
		}
	}
	if len(ofNodes) == 0 {
		return nil
	}
	return one("select %s nodes=(%s)", bare(oneOf(w, ofNodes...)), w.someNodes())
}

// service deletes a Service, or recreates it.
func service(w *world) []string {
	name := w.service()
	if w.gone[name] = !w.gone[name]; w.gone[name] {
		return one("delete-service %s", name)
	}
	return one("cluster\n%s", w.make(name))
}

// remake deletes a BackendPool, or recreates it.
func remake(w *world) []string {
	p := oneOf(w, w.pools...)
	w.ill[p] = w.ill[p] && w.gone[backendPool(p)] // a new one is not paused
	return turn(w.gone, backendPool(p), "delete-backendpool "+bare(p), w.bind(p))
}

func pauseOrEnd(w *world) []string {
	p := oneOf(w, w.pools...)
	return turn(w.ill, p, "pause "+bare(p), "pause "+bare(p)+" end")
}

// kill ends the process at a call, or starts the next one.
func kill(w *world) []string {
	at := oneOf(w, "any", "any", "PUT", "poll", "result", "record", "report")
	return one("%s", oneOf(w, "restart", "restart", "restart dead", "kill", "kill leader",
		fmt.Sprintf("kill leader at=%s nth=%d", oneOf(w, at, "settle"), 1+w.r.IntN(4)),
		fmt.Sprintf("kill at=%s nth=%d", at, 1+w.r.IntN(4)),
		fmt.Sprintf("kill at=%s nth=%d after", at, 1+w.r.IntN(4))))
}

func stale(w *world) []string {
	what := w.service()
	if w.r.IntN(3) == 0 {
		what = "nodes"
	}
	return one("stale %s for=%ds%s", what, 1+w.r.IntN(120), oneOf(w, "", " muted", " by=3s", " by=3s muted"))
}

func resourceLease(w *world) []string {
	if w.term == 0 {
		return nil
	}
	return one("%s", oneOf(w, "lease release",
		fmt.Sprintf("lease take for=%ds", 1+w.r.IntN(90)),
		fmt.Sprintf("lease take steal for=%ds", 1+w.r.IntN(90)),
		fmt.Sprintf("lease slow by=%dms for=%ds", w.r.IntN(6000), 1+w.r.IntN(60)),
		fmt.Sprintf("lease fail%s times=%d", oneOf(w, "", " applied"), w.times()),
		fmt.Sprintf("lease fail for=%ds", 1+w.r.IntN(60))))
}
