// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"
	"time"
)

// Sequences of steps that would rarely coincide at random.

// served returns an existing Service and one of its pools with a BackendPool; empty if the drawn
// Service has none.
func (w *world) served() (service, pool string) {
	service = w.service()
	for _, p := range w.services[service] {
		if !w.gone[service] && !w.gone[p] && !w.gone[backendPool(p)] && !w.ill[p] {
			return service, p
		}
	}
	return "", ""
}

// takenBack delays a write and reverts its change before the retry, with or without a process
// restart.
func takenBack(w *world) []string {
	service, pool := w.served()
	if service == "" {
		return nil
	}
	before := w.placed[service]
	lines := []string{fmt.Sprintf("lose-answer late=%ds pool=%s", 32+w.r.IntN(50), bare(pool))}
	if w.r.IntN(2) == 0 { // the SDK's retry is rejected
		lines[0] += " status=504"
		lines = append(lines, fmt.Sprintf("throttle on=PUT pool=%s code=%s times=1", bare(pool), parksAlone))
	}
	lines = append(lines, w.scale([]string{service}, w.someNodes()), fmt.Sprintf("clock %dms", 500+w.r.IntN(4000)))
	if w.r.IntN(2) == 0 {
		lines = append(lines, "restart")
	}
	return append(lines, w.scale([]string{service}, before))
}

// meanwhile writes a pool as another client during a write.
func meanwhile(w *world) []string {
	service, pool := w.served()
	if service == "" {
		return nil
	}
	lines := []string{
		w.scale([]string{service}, w.someNodes()),
		fmt.Sprintf("clock %dms", 300+w.r.IntN(2200)),
	}
	switch w.r.IntN(5) {
	case 0:
		w.gone[pool] = true
		return append(lines, "delete-pool "+bare(pool))
	case 1:
		return append(lines, fmt.Sprintf("conflict pool=%s add=%s", bare(pool), w.newForeign()))
	}
	return append(lines, fmt.Sprintf("conflict pool=%s remove=%s", bare(pool), w.node()))
}

// parked throttles one pool and changes something else before the retry.
func parked(w *world) []string {
	service, pool := w.served()
	if service == "" {
		return nil
	}
	lines := []string{
		fmt.Sprintf("throttle on=%s pool=%s code=%s retry-after=%d times=1", w.on(), bare(pool), parksAlone, 60+w.r.IntN(540)),
		w.scale([]string{service}, w.someNodes()),
		fmt.Sprintf("clock %dms", 500+w.r.IntN(3000)),
	}
	switch w.r.IntN(6) {
	case 0:
		lines = append(lines, "pause "+bare(pool), fmt.Sprintf("clock %ds", w.r.IntN(20)), "pause "+bare(pool)+" end")
	case 1:
		lines = append(lines, "delete-service "+service, fmt.Sprintf("clock %ds", w.r.IntN(20)), "cluster\n"+w.make(service))
	case 2:
		lines = append(lines, "delete-backendpool "+bare(pool), fmt.Sprintf("clock %ds", w.r.IntN(20)))
		w.gone[backendPool(pool)] = true
	case 3:
		lines = append(lines, "restart", w.scale([]string{service}, w.someNodes()))
	case 4: // until the retries are exhausted, if there are none
		lines = append(lines, "clock 35s", w.scale([]string{service}, w.someNodes()))
	default:
		if others := w.neighbours(pool); len(others) > 0 {
			lines = append(lines, w.scale(others[:1], w.someNodes()), fmt.Sprintf("clock %ds", 20+w.r.IntN(60)))
		}
	}
	return lines
}

// neighbours returns the other existing Services with pools on the same load balancer.
func (w *world) neighbours(pool string) []string {
	return slices.DeleteFunc(w.present(), func(s string) bool {
		return s == w.owner[pool] || !slices.ContainsFunc(w.services[s], func(p string) bool { return balancer(p) == balancer(pool) })
	})
}

// apart returns two Services with a pool each on different load balancers of one subscription; ok
// is false if the drawn ones are not.
func (w *world) apart() (services, pools [2]string, ok bool) {
	services[0], pools[0] = w.served()
	for range w.names {
		services[1], pools[1] = w.served()
		a, b := balancer(pools[0]), balancer(pools[1])
		if services[0] != "" && services[1] != "" && a != b && w.sub[a] == w.sub[b] {
			return services, pools, true
		}
	}
	return services, pools, false
}

// behindALock exhausts a quota while another load balancer of the subscription is locked with a
// change waiting.
func behindALock(w *world) []string {
	services, pools, ok := w.apart()
	if !ok {
		return nil
	}
	held := time.Duration(600+w.r.IntN(600)) * time.Millisecond
	if w.r.IntN(2) == 0 {
		held = time.Duration(3+w.r.IntN(60)) * time.Second
	}
	return []string{
		fmt.Sprintf("lock %s for=%s", balancer(pools[0]), held),
		w.scale(services[:1], w.someNodes()),
		fmt.Sprintf("throttle on=%s pool=%s retry-after=%d times=1", w.on(), bare(pools[1]), 10+w.r.IntN(200)),
		fmt.Sprintf("clock %dms", w.r.IntN(oneOf(w, 400, 3000))),
		w.scale(services[1:], w.someNodes()),
	}
}

// twoAnswers exhausts a quota from two load balancers at once. The last response has the shorter
// Retry-After.
func twoAnswers(w *world) []string {
	services, pools, ok := w.apart()
	if !ok {
		return nil
	}
	on := oneOf(w, "GET", "PUT")
	return []string{
		fmt.Sprintf("throttle on=%s pool=%s retry-after=%d times=1", on, bare(pools[0]), 40+w.r.IntN(300)),
		fmt.Sprintf("throttle on=%s pool=%s by=%dms retry-after=%d times=1", on, bare(pools[1]), 100+w.r.IntN(3000), 2+w.r.IntN(30)),
		w.scale(services[:], w.someNodes()),
		fmt.Sprintf("clock %ds", 30+w.r.IntN(30)),
		w.scale(services[:], w.someNodes()),
	}
}

// orphan restarts the process during a write that then fails.
func orphan(w *world) []string {
	service, pool := w.served()
	if service == "" {
		return nil
	}
	return []string{
		fmt.Sprintf("fail on=operation pool=%s code=Other%s times=1", bare(pool), oneOf(w, "", " kept")),
		w.scale([]string{service}, w.someNodes()),
		fmt.Sprintf("clock %dms", 350+w.r.IntN(1200)),
		"restart",
	}
}

// turnEnds makes a write outlast a minute, its turn with the lease, and then hit a quota while
// another load balancer waits.
func turnEnds(w *world) []string {
	services, pools, ok := w.apart()
	if !ok || w.term == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("throttle on=%s pool=%s by=%ds retry-after=%d times=1", w.on(), bare(pools[0]), 62+w.r.IntN(6), 30+w.r.IntN(200)),
		w.scale(services[:1], w.someNodes()),
		fmt.Sprintf("clock %dms", 60_300+w.r.IntN(4000)),
		w.scale(services[1:], w.someNodes()),
	}
}

// busy changes pools of one load balancer faster than Azure writes. A retry must not starve.
func busy(w *world) []string {
	service, pool := w.served()
	if service == "" {
		return nil
	}
	others := w.neighbours(pool)
	if len(others) == 0 {
		return nil
	}
	lines := []string{
		fmt.Sprintf("slow on=PUT lb=%s by=%ds for=4m", balancer(pool), 5+w.r.IntN(15)),
		fmt.Sprintf("conflict pool=%s answer=409 times=1", bare(pool)),
		w.scale([]string{service}, w.someNodes()),
	}
	for range 8 + w.r.IntN(8) {
		lines = append(lines, fmt.Sprintf("clock %ds", 3+w.r.IntN(12)), w.scale(others, w.someNodes()))
	}
	return lines
}
