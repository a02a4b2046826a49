// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// happening is a kind of step: how often it comes among the others, and its text; empty
// if it would make no sense now.
type happening struct {
	name   string
	weight int
	does   string // for people
	text   func(w *world) string
}

// happenings are all kinds. Changes of the cluster are a good third: a fault shows only
// in what is done meanwhile.
func happenings() []happening {
	return []happening{
		{"scale", 26, "endpoints of one Service, or of all, run on other nodes", scale},
		{"drain", 6, "a node's endpoints move away, at once or while they still serve", func(w *world) string {
			return fmt.Sprintf("drain %s to=%s%s", w.node(), w.node(), oneOf(w, "", " serving"))
		}},
		{"node-lost", 7, "a node goes, or comes back", nodeLost},
		{"service", 6, "a Service goes, or comes back", service},
		{"throttle", 9, "429 for one pool, of a load balancer's lock, or of a quota; with Retry-After or without", throttle},
		{"conflict", 6, "409 and 412 to writes", func(w *world) string {
			return fmt.Sprintf("conflict pool=%s answer=%d times=%d", w.pool(), oneOf(w, 409, 412), w.times())
		}},
		{"other writer", 6, "somebody else adds an address to a pool, or takes one of ours", otherWriter},
		{"lose-answer", 6, "an answer is lost, of a request that was carried out, was not, or will be up to 80 s later", loseAnswer},
		{"fail", 12, "400 to 503, a 404 of something else, operations that end badly, polls that fail", fail},
		{"slow", 4, "Azure takes up to 20 s longer", func(w *world) string {
			return fmt.Sprintf("slow on=%s pool=%s by=%dms times=%d", w.on(), w.pool(), 100+w.r.IntN(20_000), w.times())
		}},
		{"kill", 8, "the process dies, at rest or at any call or write of the ledger, loses its leadership, or starts", kill},
		{"delete", 4, "a pool is deleted in Azure, or made again", remove},
		{"stale", 9, "news of a Service or of the nodes come late, one by one, or as events alone", stale},
		{"lock", 3, "another part of the process holds a lane", func(w *world) string { return fmt.Sprintf("lock %s for=%ds", oneOf(w, w.balances...), 1+w.r.IntN(90)) }},
		{"ledger", 3, "writes of the ledger fail, or seem to", func(w *world) string {
			return fmt.Sprintf("ledger fail%s %s", oneOf(w, "", " applied"), oneOf(w, "times=1", "times=2", "for=20s"))
		}},
		{"lease", 12, "somebody else takes the resource lease, politely or not; requests for it fail", resourceLease},
		{"heal", 1, "all faults cease", func(*world) string { return "heal" }},
	}
}

// chosen are the happenings of one schedule.
type chosen []happening

// choose leaves out a third of the kinds, other ones for each seed, so that what is
// left comes often and together.
func (w *world) choose() chosen {
	var all chosen
	for _, h := range happenings() {
		if h.name == "scale" || w.r.IntN(3) > 0 {
			all = append(all, h)
		}
	}
	return all
}

func (c chosen) pick(w *world) func(*world) string {
	total := 0
	for _, h := range c {
		total += h.weight
	}
	n := w.r.IntN(total)
	for _, h := range c {
		if n -= h.weight; n < 0 {
			return h.text
		}
	}
	panic("simulate: the weights do not add up")
}

func (w *world) times() int { return 1 + w.r.IntN(3) }

func (w *world) on() string { return oneOf(w, "GET", "PUT", "any") }

func scale(w *world) string {
	names := w.service()
	if w.r.IntN(4) == 0 {
		there := slices.DeleteFunc(slices.Clone(w.names), func(name string) bool { return w.gone[name] })
		names = strings.Join(there, " ")
	}
	if names == "" || w.gone[names] {
		return ""
	}
	return fmt.Sprintf("scale %s nodes=(%s)", names, w.someNodes())
}

func nodeLost(w *world) string {
	n := w.node()
	w.gone[n] = !w.gone[n]
	if !w.gone[n] {
		return "node-lost " + n + " back"
	}
	return "node-lost " + n
}

// service deletes a Service, or makes it again.
func service(w *world) string {
	name := w.service()
	w.gone[name] = !w.gone[name]
	if w.gone[name] {
		return "delete-service " + name
	}
	return fmt.Sprintf("cluster\nservice %s pools=(%s) nodes=(%s)", name, strings.Join(w.services[name], ", "), w.someNodes())
}

// throttle has Azure answer 429: for one pool, a load balancer's lock, or a quota.
func throttle(w *world) string {
	text := fmt.Sprintf("throttle on=%s pool=%s", w.on(), w.pool())
	switch w.r.IntN(3) {
	case 0:
		text += " code=RetryableError/RetryableErrorDueToAnotherOperation"
	case 1:
		text += " code=RetryableError/ReferencedResourceNotProvisioned"
	}
	if w.r.IntN(5) > 0 {
		text += fmt.Sprintf(" retry-after=%d", 1+w.r.IntN(oneOf(w, 20, 90, 600)))
	}
	return text + fmt.Sprintf(" times=%d", w.times())
}

// otherWriter changes a pool: what it adds is its own, what it takes is ours.
func otherWriter(w *world) string {
	if w.r.IntN(2) == 0 {
		return fmt.Sprintf("conflict pool=%s remove=%s", w.pool(), w.node())
	}
	return fmt.Sprintf("conflict pool=%s add=%s", w.pool(), w.newForeign())
}

func loseAnswer(w *world) string {
	switch w.r.IntN(3) {
	case 0:
		return fmt.Sprintf("lose-answer late=%ds pool=%s", 1+w.r.IntN(80), w.pool())
	case 1:
		return fmt.Sprintf("lose-answer on=%s pool=%s unapplied times=%d", w.on(), w.pool(), w.times())
	}
	return fmt.Sprintf("lose-answer on=%s pool=%s times=%d", w.on(), w.pool(), w.times())
}

// fail has Azure refuse a request, end an accepted write badly, or lose track of it.
func fail(w *world) string {
	switch w.r.IntN(3) {
	case 0:
		code := oneOf(w, "RetryableErrorX", "Canceled/CanceledAndSupersededDueToAnotherOperation", "Other", "TooManyRequests")
		return fmt.Sprintf("fail on=operation pool=%s code=%s%s times=%d", w.pool(), code, oneOf(w, "", " kept"), w.times())
	case 1:
		return fmt.Sprintf("fail on=poll pool=%s status=%d%s times=%d", w.pool(), oneOf(w, 403, 404, 429, 500), oneOf(w, "", " retry-after=40"), w.times())
	}
	return fmt.Sprintf("fail on=%s pool=%s status=%s times=%d", w.on(), w.pool(), oneOf(w, "400", "401", "404 code=LinkedResourceNotFound", "408", "500", "503"), oneOf(w, 1, 3, 5))
}

// kill ends the process at any boundary, or starts the next.
func kill(w *world) string {
	at := oneOf(w, "any", "any", "PUT", "poll", "result", "record", "report")
	return oneOf(w, "restart", "restart", "restart dead", "kill", "kill leader",
		fmt.Sprintf("kill at=%s nth=%d", at, 1+w.r.IntN(4)),
		fmt.Sprintf("kill at=%s nth=%d after", at, 1+w.r.IntN(4)))
}

// remove deletes a pool in Azure, or makes it again, empty but for what is foreign.
func remove(w *world) string {
	at := oneOf(w, w.pools...)
	w.gone[at] = !w.gone[at]
	if w.gone[at] {
		return "delete-pool " + bare(at)
	}
	return fmt.Sprintf("cluster\npool %s foreign=(%s)", at, w.newForeign())
}

func stale(w *world) string {
	what := w.service()
	if w.r.IntN(3) == 0 {
		what = "nodes"
	}
	return fmt.Sprintf("stale %s for=%ds%s", what, 1+w.r.IntN(120), oneOf(w, "", " muted", " by=3s", " by=3s muted"))
}

func resourceLease(w *world) string {
	if !w.lease {
		return ""
	}
	return oneOf(w, "lease release",
		fmt.Sprintf("lease take for=%ds", 1+w.r.IntN(90)),
		fmt.Sprintf("lease take steal for=%ds", 1+w.r.IntN(90)),
		fmt.Sprintf("lease fail%s times=%d", oneOf(w, "", " applied"), w.times()),
		fmt.Sprintf("lease fail for=%ds", 1+w.r.IntN(60)))
}
