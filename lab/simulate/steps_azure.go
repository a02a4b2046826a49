// SPDX-License-Identifier: Apache-2.0

package simulate

import "fmt"

// The steps that Azure and other writers make.

func (w *world) times() int { return 1 + w.r.IntN(3) }

func (w *world) on() string { return oneOf(w, "GET", "PUT", "any") }

// target is a pool, or sometimes a whole load balancer.
func (w *world) target() string {
	if w.r.IntN(4) == 0 {
		return "whole=" + oneOf(w, w.balances...)
	}
	return "pool=" + w.pool()
}

// throttle has Azure answer 429: for one pool, a load balancer's lock, or a quota.
func throttle(w *world) []string {
	text := fmt.Sprintf("throttle on=%s %s", w.on(), w.target())
	switch w.r.IntN(3) {
	case 0:
		text += " code=RetryableError/RetryableErrorDueToAnotherOperation"
	case 1:
		text += " code=" + parksAlone
	}
	if w.r.IntN(5) > 0 {
		text += fmt.Sprintf(" retry-after=%d", 1+w.r.IntN(oneOf(w, 20, 90, 600)))
	}
	return one("%s times=%d", text, w.times())
}

// parksAlone is the code of a 429 that closes no gate.
const parksAlone = "RetryableError/ReferencedResourceNotProvisioned"

// otherWriter changes a pool: what it adds is its own, what it takes is ours; so is what it
// sets Down, or not.
func otherWriter(w *world) []string {
	switch w.r.IntN(6) {
	case 0, 1:
		return one("conflict pool=%s remove=%s", w.pool(), w.node())
	case 2:
		return one("conflict pool=%s %s=%s", w.pool(), oneOf(w, "down", "down", "up"), w.node())
	}
	return one("conflict pool=%s add=%s", w.pool(), w.newForeign())
}

func loseAnswer(w *world) []string {
	switch w.r.IntN(3) {
	case 0:
		return one("lose-answer late=%ds pool=%s", 1+w.r.IntN(80), w.pool())
	case 1:
		return one("lose-answer on=%s %s unapplied times=%d", w.on(), w.target(), w.times())
	}
	return one("lose-answer on=%s %s times=%d", w.on(), w.target(), w.times())
}

// fail has Azure refuse a request, end an accepted write badly, or lose track of it.
func fail(w *world) []string {
	switch w.r.IntN(3) {
	case 0:
		code := oneOf(w, "RetryableErrorX", "Canceled/CanceledAndSupersededDueToAnotherOperation", "Other", "TooManyRequests")
		return one("fail on=operation %s code=%s%s times=%d", w.target(), code, oneOf(w, "", " kept"), w.times())
	case 1:
		return one("fail on=poll pool=%s status=%d%s times=%d", w.pool(), oneOf(w, 403, 404, 429, 500), oneOf(w, "", " retry-after=40"), w.times())
	}
	return one("fail on=%s %s status=%s times=%d", w.on(), w.target(), oneOf(w, "400", "401", "404 code=LinkedResourceNotFound", "408", "500", "503"), oneOf(w, 1, 3, 5))
}

func slow(w *world) []string {
	if w.r.IntN(6) == 0 { // as if the connection were dead
		return one("slow on=%s pool=%s by=30m times=1", w.on(), w.pool())
	}
	return one("slow on=%s %s by=%dms times=%d", w.on(), w.target(), 100+w.r.IntN(20_000), w.times())
}

func unreachable(w *world) []string {
	return one("unreachable %s%s for=%ds", oneOf(w, "refused", "silent"), oneOf(w, "", " lb="+oneOf(w, w.balances...)), 1+w.r.IntN(oneOf(w, 30, 600)))
}

// remove deletes a pool in Azure, or makes it again, empty but for what is foreign.
func remove(w *world) []string {
	at := oneOf(w, w.pools...)
	return turn(w.gone, at, "delete-pool "+bare(at), fmt.Sprintf("cluster\npool %s foreign=(%s)", at, w.newForeign()))
}
