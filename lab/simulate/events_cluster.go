// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"
)

func scaleEvent(w *scheduleBuilder) []string {
	there := w.existingServices()
	if len(there) == 0 {
		return nil
	}
	names := []string{oneOf(w, there...)}
	if w.r.IntN(4) == 0 {
		names = there
	}
	return oneEvent("%s", w.scaleStep(names, w.randomNodes()))
}

func (sb *scheduleBuilder) scaleStep(services []string, nodes string) string {
	for _, s := range services {
		sb.serviceNodes[s] = nodes
	}
	return fmt.Sprintf("scale %s nodes=(%s)", strings.Join(services, " "), nodes)
}

func changeState(got map[string]bool, state, begin, end string) []string {
	got[state] = !got[state]
	if got[state] {
		return oneEvent("%s", begin)
	}
	return oneEvent("%s", end)
}

func nodeLossEvent(w *scheduleBuilder) []string {
	n := w.randomNode()
	return changeState(w.deleted, n, "node-lost "+n, "node-lost "+n+" back")
}

func excludeEvent(w *scheduleBuilder) []string {
	n := w.randomNode()
	return changeState(w.unavailable, n, "exclude "+n, "exclude "+n+" end")
}

func taintEvent(w *scheduleBuilder) []string {
	switch n := w.randomNode(); w.r.IntN(5) {
	case 0:
		var steps []string
		for range 5 {
			steps = append(steps, "taint "+n, "clock 100ms", "taint "+n+" end", "clock 100ms")
		}
		return steps[:len(steps)-2*w.r.IntN(2)]
	case 1:
		return oneEvent("taint n1 %s%s", oneOf(w, "n2", "n3", "n2 n3"), oneOf(w, "", " end", " announced"))
	default:
		return oneEvent("taint %s%s", n, oneOf(w, "", " announced", " end"))
	}
}

func selectNodes(w *scheduleBuilder) []string {
	var ofNodes []string
	for _, p := range w.pools {
		if w.owner[p] == "" {
			ofNodes = append(ofNodes, p)
		}
	}
	if len(ofNodes) == 0 {
		return nil
	}
	return oneEvent("select %s nodes=(%s)", poolName(oneOf(w, ofNodes...)), w.randomNodes())
}

func serviceEvent(w *scheduleBuilder) []string {
	name := w.randomService()
	if w.deleted[name] = !w.deleted[name]; w.deleted[name] {
		return oneEvent("delete-service %s", name)
	}
	return oneEvent("cluster\n%s", w.serviceStep(name))
}

func backendPoolEvent(w *scheduleBuilder) []string {
	p := oneOf(w, w.pools...)
	w.unavailable[p] = w.unavailable[p] && w.deleted[backendPoolKey(p)] // a new one is not paused
	return changeState(w.deleted, backendPoolKey(p), "delete-backendpool "+poolName(p), w.backendPoolStep(p))
}

func pausePoolEvent(w *scheduleBuilder) []string {
	p := oneOf(w, w.pools...)
	return changeState(w.unavailable, p, "pause "+poolName(p), "pause "+poolName(p)+" end")
}

func killEvent(w *scheduleBuilder) []string {
	at := oneOf(w, "any", "any", "PUT", "poll", "result", "record", "report")
	return oneEvent("%s", oneOf(w, "restart", "restart", "restart dead", "kill", "kill leader",
		fmt.Sprintf("kill leader at=%s nth=%d", oneOf(w, at, "settle"), 1+w.r.IntN(4)),
		fmt.Sprintf("kill at=%s nth=%d", at, 1+w.r.IntN(4)),
		fmt.Sprintf("kill at=%s nth=%d after", at, 1+w.r.IntN(4))))
}

func staleEvent(w *scheduleBuilder) []string {
	service := w.randomService()
	if w.r.IntN(3) == 0 {
		service = "nodes"
	}
	return oneEvent("stale %s for=%ds%s", service, 1+w.r.IntN(120), oneOf(w, "", " muted", " by=3s", " by=3s muted"))
}

func leaseEvent(w *scheduleBuilder) []string {
	if w.leaseSeconds == 0 {
		return nil
	}
	return oneEvent("%s", oneOf(w, "lease release",
		fmt.Sprintf("lease take for=%ds", 1+w.r.IntN(90)),
		fmt.Sprintf("lease take steal for=%ds", 1+w.r.IntN(90)),
		fmt.Sprintf("lease slow by=%dms for=%ds", w.r.IntN(6000), 1+w.r.IntN(60)),
		fmt.Sprintf("lease fail%s times=%d", oneOf(w, "", " applied"), w.randomTimes()),
		fmt.Sprintf("lease fail for=%ds", 1+w.r.IntN(60))))
}
