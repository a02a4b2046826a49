// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"slices"
	"time"
)

// Sequences of steps that would rarely coincide at random.

// poolWithService returns "" if the drawn Service has no usable pool.
func (sb *scheduleBuilder) poolWithService() (service, pool string) {
	service = sb.randomService()
	for _, p := range sb.services[service] {
		if !sb.deleted[service] && !sb.deleted[p] && !sb.deleted[backendPoolKey(p)] && !sb.unavailable[p] {
			return service, p
		}
	}
	return "", ""
}

// revertEvent delays a write and reverts its change before the retry.
func revertEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" {
		return nil
	}
	before := w.serviceNodes[service]
	lines := []string{fmt.Sprintf("lose-answer late=%ds pool=%s", 32+w.r.IntN(50), poolName(pool))}
	if w.r.IntN(2) == 0 { // the SDK's retry is rejected
		lines[0] += " status=504"
		lines = append(lines, fmt.Sprintf("throttle on=PUT pool=%s code=%s times=1", poolName(pool), singlePoolCode))
	}
	lines = append(lines, w.scaleStep([]string{service}, w.randomNodes()), fmt.Sprintf("clock %dms", 500+w.r.IntN(4000)))
	if w.r.IntN(2) == 0 {
		lines = append(lines, "restart")
	}
	return append(lines, w.scaleStep([]string{service}, before))
}

func concurrentWriteEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" {
		return nil
	}
	lines := []string{
		w.scaleStep([]string{service}, w.randomNodes()),
		fmt.Sprintf("clock %dms", 300+w.r.IntN(2200)),
	}
	switch w.r.IntN(5) {
	case 0:
		w.deleted[pool] = true
		return append(lines, "delete-pool "+poolName(pool))
	case 1:
		return append(lines, fmt.Sprintf("conflict pool=%s add=%s", poolName(pool), w.newExternalAddress()))
	}
	return append(lines, fmt.Sprintf("conflict pool=%s remove=%s", poolName(pool), w.randomNode()))
}

func throttledPoolEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" {
		return nil
	}
	lines := []string{
		fmt.Sprintf("throttle on=%s pool=%s code=%s retry-after=%d times=1", w.randomMethod(), poolName(pool), singlePoolCode, 60+w.r.IntN(540)),
		w.scaleStep([]string{service}, w.randomNodes()),
		fmt.Sprintf("clock %dms", 500+w.r.IntN(3000)),
	}
	switch w.r.IntN(6) {
	case 0:
		lines = append(lines, "pause "+poolName(pool), fmt.Sprintf("clock %ds", w.r.IntN(20)), "pause "+poolName(pool)+" end")
	case 1:
		lines = append(lines, "delete-service "+service, fmt.Sprintf("clock %ds", w.r.IntN(20)), "cluster\n"+w.serviceStep(service))
	case 2:
		lines = append(lines, "delete-backendpool "+poolName(pool), fmt.Sprintf("clock %ds", w.r.IntN(20)))
		w.deleted[backendPoolKey(pool)] = true
	case 3:
		lines = append(lines, "restart", w.scaleStep([]string{service}, w.randomNodes()))
	case 4: // until the retries are exhausted, if there are none
		lines = append(lines, "clock 35s", w.scaleStep([]string{service}, w.randomNodes()))
	default:
		if others := w.adjacentServices(pool); len(others) > 0 {
			lines = append(lines, w.scaleStep(others[:1], w.randomNodes()), fmt.Sprintf("clock %ds", 20+w.r.IntN(60)))
		}
	}
	return lines
}

func (sb *scheduleBuilder) adjacentServices(pool string) []string {
	return slices.DeleteFunc(sb.existingServices(), func(s string) bool {
		return s == sb.owner[pool] || !slices.ContainsFunc(sb.services[s], func(p string) bool { return loadBalancerOf(p) == loadBalancerOf(pool) })
	})
}

// independentServices returns Services on different load balancers of one subscription.
func (sb *scheduleBuilder) independentServices() (services, pools [2]string, ok bool) {
	services[0], pools[0] = sb.poolWithService()
	for range sb.serviceNames {
		services[1], pools[1] = sb.poolWithService()
		a, b := loadBalancerOf(pools[0]), loadBalancerOf(pools[1])
		if services[0] != "" && services[1] != "" && a != b && sb.subscriptions[a] == sb.subscriptions[b] {
			return services, pools, true
		}
	}
	return services, pools, false
}

// lockedQuotaEvent exhausts a quota while another load balancer is locked with a change waiting.
func lockedQuotaEvent(w *scheduleBuilder) []string {
	services, pools, ok := w.independentServices()
	if !ok {
		return nil
	}
	held := time.Duration(600+w.r.IntN(600)) * time.Millisecond
	if w.r.IntN(2) == 0 {
		held = time.Duration(3+w.r.IntN(60)) * time.Second
	}
	return []string{
		fmt.Sprintf("lock %s for=%s", loadBalancerOf(pools[0]), held),
		w.scaleStep(services[:1], w.randomNodes()),
		fmt.Sprintf("throttle on=%s pool=%s retry-after=%d times=1", w.randomMethod(), poolName(pools[1]), 10+w.r.IntN(200)),
		fmt.Sprintf("clock %dms", w.r.IntN(oneOf(w, 400, 3000))),
		w.scaleStep(services[1:], w.randomNodes()),
	}
}

// retryAfterPairEvent exhausts a quota twice; the last response has the shorter Retry-After.
func retryAfterPairEvent(w *scheduleBuilder) []string {
	services, pools, ok := w.independentServices()
	if !ok {
		return nil
	}
	on := oneOf(w, "GET", "PUT")
	return []string{
		fmt.Sprintf("throttle on=%s pool=%s retry-after=%d times=1", on, poolName(pools[0]), 40+w.r.IntN(300)),
		fmt.Sprintf("throttle on=%s pool=%s by=%dms retry-after=%d times=1", on, poolName(pools[1]), 100+w.r.IntN(3000), 2+w.r.IntN(30)),
		w.scaleStep(services[:], w.randomNodes()),
		fmt.Sprintf("clock %ds", 30+w.r.IntN(30)),
		w.scaleStep(services[:], w.randomNodes()),
	}
}

// orphanedWriteEvent restarts the process during a write that then fails.
func orphanedWriteEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" {
		return nil
	}
	return []string{
		fmt.Sprintf("fail on=operation pool=%s code=Other%s times=1", poolName(pool), oneOf(w, "", " kept")),
		w.scaleStep([]string{service}, w.randomNodes()),
		fmt.Sprintf("clock %dms", 350+w.r.IntN(1200)),
		"restart",
	}
}

// leaseTimeoutEvent makes a write outlast its minute with the lease and then hit a quota.
func leaseTimeoutEvent(w *scheduleBuilder) []string {
	services, pools, ok := w.independentServices()
	if !ok || w.leaseSeconds == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("throttle on=%s pool=%s by=%ds retry-after=%d times=1", w.randomMethod(), poolName(pools[0]), 62+w.r.IntN(6), 30+w.r.IntN(200)),
		w.scaleStep(services[:1], w.randomNodes()),
		fmt.Sprintf("clock %dms", 60_300+w.r.IntN(4000)),
		w.scaleStep(services[1:], w.randomNodes()),
	}
}

// loadEvent changes pools faster than Azure writes. A retry must not starve.
func loadEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" {
		return nil
	}
	others := w.adjacentServices(pool)
	if len(others) == 0 {
		return nil
	}
	lines := []string{
		fmt.Sprintf("slow on=PUT lb=%s by=%ds for=4m", loadBalancerOf(pool), 5+w.r.IntN(15)),
		fmt.Sprintf("conflict pool=%s answer=409 times=1", poolName(pool)),
		w.scaleStep([]string{service}, w.randomNodes()),
	}
	for range 8 + w.r.IntN(8) {
		lines = append(lines, fmt.Sprintf("clock %ds", 3+w.r.IntN(12)), w.scaleStep(others, w.randomNodes()))
	}
	return lines
}
