// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
)

// eventKind is a kind of event; it has no steps if it is not applicable now.
type eventKind struct {
	name        string
	weight      int
	description string // description
	newEvent    func(w *scheduleBuilder) []string
}

// eventKinds are about one third cluster changes: faults matter only during changes.
func eventKinds() []eventKind {
	return []eventKind{
		{"scale", 26, "endpoints of one Service, or of all, run on other nodes", scaleEvent},
		{"drain", 6, "a node's endpoints move away, at once or while they still serve", func(w *scheduleBuilder) []string {
			return oneEvent("drain %s to=%s%s", w.randomNode(), w.randomNode(), oneOf(w, "", " serving"))
		}},
		{"node-lost", 6, "a node is removed, or comes back", nodeLossEvent},
		{"exclude", 3, "a node is kept out of all pools, or not any more", excludeEvent},
		{"taint", 9, "nodes leave, or do not any more; a taint flips ten times in a second", taintEvent},
		{"replace", 3, "a new node takes the place of one of its name", func(w *scheduleBuilder) []string {
			return oneEvent("replace %s%s", w.randomNode(), oneOf(w, "", " same"))
		}},
		{"select", 6, "a pool of nodes gets others", selectNodes},
		{"service", 6, "a Service is deleted, or comes back", serviceEvent},
		{"BackendPool", 6, "a BackendPool is deleted, or made again", backendPoolEvent},
		{"pause", 6, "a BackendPool is paused, or not any more", pausePoolEvent},
		{"throttle", 9, "429 for one pool, of a load balancer's lock, or of a quota; with Retry-After or without", throttleEvent},
		{"conflict", 6, "409 and 412 to writes", func(w *scheduleBuilder) []string {
			return oneEvent("conflict pool=%s answer=%d times=%d", w.randomPool(), oneOf(w, 409, 412), w.randomTimes())
		}},
		{"other writer", 6, "another client adds an address to a pool, or removes one of ours", otherWriterEvent},
		{"lose-answer", 6, "an answer is lost, of a request that was carried out, was not, or will be up to 80 s later", responseLossEvent},
		{"fail", 12, "400 to 503, a 404 of something else, operations that end badly, polls that fail", failEvent},
		{"slow", 4, "Azure takes up to 20 s longer, sometimes half an hour", slowEvent},
		{"kill", 8, "the process dies, at rest or at any call or write of the ledger, loses its leadership, or starts", killEvent},
		{"suspend", 4, "the machine is suspended, whatever is under way, for up to 15 min", func(w *scheduleBuilder) []string {
			return oneEvent("suspend %ds", 1+w.r.IntN(oneOf(w, 10, 60, 900)))
		}},
		{"delete", 4, "a pool is deleted in Azure, or made again", deletePoolEvent},
		{"stale", 9, "news of a Service or of the nodes come late, one by one, or as events alone", staleEvent},
		{"lock", 3, "another part of the process holds a lane", func(w *scheduleBuilder) []string {
			return oneEvent("lock %s for=%ds", oneOf(w, w.loadBalancers...), 1+w.r.IntN(90))
		}},
		{"ledger", 3, "writes of the ledger fail, or seem to, for up to 4 min", func(w *scheduleBuilder) []string {
			return oneEvent("ledger fail%s %s", oneOf(w, "", " applied"), oneOf(w, "times=1", "times=2", fmt.Sprintf("for=%ds", 1+w.r.IntN(240))))
		}},
		{"unreachable", 3, "no request reaches Azure, or one load balancer: refused, or into silence, for up to 10 min", networkErrorEvent},
		{"lease", 12, "another holder takes the resource lease, politely or not; requests for it fail, or are answered late", leaseEvent},
		{"heal", 1, "all faults cease", func(*scheduleBuilder) []string { return oneEvent("heal") }},
		{"taken back", 6, "a write is lost, lands later, and its change is taken back at once", revertEvent},
		{"meanwhile", 5, "another client writes a pool, or deletes it, while a write of ours is under way", concurrentWriteEvent},
		{"parked", 6, "a pool is left alone for minutes, while its Service, its BackendPool, the process or its neighbor changes", throttledPoolEvent},
		{"behind a lock", 4, "a quota is used up while a lane is in other hands", lockedQuotaEvent},
		{"turn", 3, "a quota is used up by a write that outlasts the process's turn with the lease, while another lane waits", leaseTimeoutEvent},
		{"two answers", 3, "two load balancers use up a quota at once, with different Retry-After", retryAfterPairEvent},
		{"orphan", 4, "the process ends while a write is under way that fails in the end", orphanedWriteEvent},
		{"lease ends", 6, "the resource lease is lost or ends in the middle of an attempt, or while it is requested", leaseEndEvent},
		{"quarrel", 2, "for minutes another holder takes the lease by force, again and again, and an address of ours", leaseConflictEvent},
		{"frozen", 6, "the leader is frozen in the middle of an attempt, for longer than its lease or not, while its Service changes, whichever process leads by then", leaderFreezeEvent},
		{"busy", 4, "for minutes the pools of one load balancer change faster than Azure writes, and one of them has to be tried again", loadEvent},
	}
}

func oneEvent(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

type eventKindSet []eventKind

// chooseKinds omits a random third, so that the others occur often and together.
func (sb *scheduleBuilder) chooseKinds() eventKindSet {
	var kinds eventKindSet
	for _, h := range eventKinds() {
		if h.name == "scale" || sb.r.IntN(3) > 0 {
			kinds = append(kinds, h)
		}
	}
	return kinds
}

func (e eventKindSet) pickKind(w *scheduleBuilder) func(*scheduleBuilder) []string {
	total := 0
	for _, h := range e {
		total += h.weight
	}
	n := w.r.IntN(total)
	for _, h := range e {
		if n -= h.weight; n < 0 {
			return h.newEvent
		}
	}
	panic("simulate: the weights do not add up")
}
