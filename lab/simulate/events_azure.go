// SPDX-License-Identifier: Apache-2.0

package simulate

import "fmt"

func (sb *scheduleBuilder) randomTimes() int { return 1 + sb.r.IntN(3) }

func (sb *scheduleBuilder) randomMethod() string { return oneOf(sb, "GET", "PUT", "any") }

func (sb *scheduleBuilder) randomTarget() string {
	if sb.r.IntN(4) == 0 {
		return "whole=" + oneOf(sb, sb.loadBalancers...)
	}
	return "pool=" + sb.randomPool()
}

// throttleEvent affects one pool, a load balancer's lock, or a quota.
func throttleEvent(w *scheduleBuilder) []string {
	text := fmt.Sprintf("throttle on=%s %s", w.randomMethod(), w.randomTarget())
	switch w.r.IntN(3) {
	case 0:
		text += " code=RetryableError/RetryableErrorDueToAnotherOperation"
	case 1:
		text += " code=" + singlePoolCode
	}
	if w.r.IntN(5) > 0 {
		text += fmt.Sprintf(" retry-after=%d", 1+w.r.IntN(oneOf(w, 20, 90, 600)))
	}
	return oneEvent("%s times=%d", text, w.randomTimes())
}

// singlePoolCode throttles a single pool only.
const singlePoolCode = "RetryableError/ReferencedResourceNotProvisioned"

func otherWriterEvent(w *scheduleBuilder) []string {
	switch w.r.IntN(6) {
	case 0, 1:
		return oneEvent("conflict pool=%s remove=%s", w.randomPool(), w.randomNode())
	case 2:
		return oneEvent("conflict pool=%s %s=%s", w.randomPool(), oneOf(w, "down", "down", "up"), w.randomNode())
	}
	return oneEvent("conflict pool=%s add=%s", w.randomPool(), w.newExternalAddress())
}

func responseLossEvent(w *scheduleBuilder) []string {
	switch w.r.IntN(3) {
	case 0:
		return oneEvent("lose-answer late=%ds pool=%s", 1+w.r.IntN(80), w.randomPool())
	case 1:
		return oneEvent("lose-answer on=%s %s unapplied times=%d", w.randomMethod(), w.randomTarget(), w.randomTimes())
	}
	return oneEvent("lose-answer on=%s %s times=%d", w.randomMethod(), w.randomTarget(), w.randomTimes())
}

func failEvent(w *scheduleBuilder) []string {
	switch w.r.IntN(3) {
	case 0:
		code := oneOf(w, "RetryableErrorX", "Canceled/CanceledAndSupersededDueToAnotherOperation", "Other", "TooManyRequests")
		return oneEvent("fail on=operation %s code=%s%s times=%d", w.randomTarget(), code, oneOf(w, "", " kept"), w.randomTimes())
	case 1:
		return oneEvent("fail on=poll pool=%s status=%d%s times=%d", w.randomPool(), oneOf(w, 403, 404, 429, 500), oneOf(w, "", " retry-after=40"), w.randomTimes())
	}
	return oneEvent("fail on=%s %s status=%s times=%d", w.randomMethod(), w.randomTarget(), oneOf(w, "400", "401", "404 code=LinkedResourceNotFound", "408", "500", "503"), oneOf(w, 1, 3, 5))
}

func slowEvent(w *scheduleBuilder) []string {
	if w.r.IntN(6) == 0 { // like a dead connection
		return oneEvent("slow on=%s pool=%s by=30m times=1", w.randomMethod(), w.randomPool())
	}
	return oneEvent("slow on=%s %s by=%dms times=%d", w.randomMethod(), w.randomTarget(), 100+w.r.IntN(20_000), w.randomTimes())
}

func networkErrorEvent(w *scheduleBuilder) []string {
	return oneEvent("unreachable %s%s for=%ds", oneOf(w, "refused", "silent"), oneOf(w, "", " lb="+oneOf(w, w.loadBalancers...)), 1+w.r.IntN(oneOf(w, 30, 600)))
}

func deletePoolEvent(w *scheduleBuilder) []string {
	at := oneOf(w, w.pools...)
	return changeState(w.deleted, at, "delete-pool "+poolName(at), fmt.Sprintf("cluster\npool %s foreign=(%s)", at, w.newExternalAddress()))
}
