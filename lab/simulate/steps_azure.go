// SPDX-License-Identifier: Apache-2.0

package simulate

import "fmt"

// Steps of Azure and other writers.

func (w *world) times() int { return 1 + w.r.IntN(3) }

func (w *world) on() string { return oneOf(w, "GET", "PUT", "any") }

// target returns a pool, or sometimes a whole load balancer.
func (w *world) target() string {
	if w.r.IntN(4) == 0 {
		return "whole=" + oneOf(w, w.balances...)
	}
	return "pool=" + w.pool()
}

// throttle makes Azure answer 429: for one pool, a load balancer's lock, or a quota.
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

// parksAlone is a 429 that throttles a single pool only.
const parksAlone = "RetryableError/ReferencedResourceNotProvisioned"

// otherWriter changes a pool: it adds a foreign address, or removes or sets Down a managed one.
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

// fail rejects requests, fails an accepted write, or fails polls.
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
	if w.r.IntN(6) == 0 { // like a dead connection
		return one("slow on=%s pool=%s by=30m times=1", w.on(), w.pool())
	}
	return one("slow on=%s %s by=%dms times=%d", w.on(), w.target(), 100+w.r.IntN(20_000), w.times())
}

func unreachable(w *world) []string {
	return one("unreachable %s%s for=%ds", oneOf(w, "refused", "silent"), oneOf(w, "", " lb="+oneOf(w, w.balances...)), 1+w.r.IntN(oneOf(w, 30, 600)))
}

// remove deletes a pool in Azure, or recreates it with only foreign addresses.
func remove(w *world) []string {
	at := oneOf(w, w.pools...)
	return turn(w.gone, at, "delete-pool "+bare(at), fmt.Sprintf("cluster\npool %s foreign=(%s)", at, w.newForeign()))
}
