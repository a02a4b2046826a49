// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/scenario"
)

// scheduleBuilder is the generator's model of the stage, which it does not observe.
type scheduleBuilder struct {
	r             *rand.Rand
	nodes         int
	loadBalancers []string
	subscriptions map[string]string   // subscription by load balancer
	pools         []string            // as LB/NAME
	services      map[string][]string // pools by Service
	serviceNames  []string            // of Services, in order
	owner         map[string]string   // Service by pool; empty for a pool of nodes
	serviceNodes  map[string]string   // nodes by Service
	leaseSeconds  int                 // of the resource lease, in seconds; 0 if none
	replicas      bool
	deleted       map[string]bool // Services, nodes, pools and BackendPools
	unavailable   map[string]bool // excluded nodes and paused pools
	nextAddress   int
	// skipsIfMatch ignores If-Match, which protects against late writes.
	skipsIfMatch bool
	// revertsLate reverts superseded writes late. A new process considers them in sync until a
	// resync, so here the process survives and no response is lost.
	revertsLate bool
}

func newWorld(seed, stream uint64) *scheduleBuilder {
	return &scheduleBuilder{
		r:             rand.New(rand.NewPCG(seed, stream)), //nolint:gosec // it has to be repeatable
		subscriptions: map[string]string{}, services: map[string][]string{}, owner: map[string]string{}, serviceNodes: map[string]string{},
		deleted: map[string]bool{}, unavailable: map[string]bool{},
	}
}

// Schedule returns the steps of a seed: a world, n events, and the end, when all faults stop and
// every pool must get in sync.
func Schedule(seed uint64, n int) []scenario.Step {
	w := newWorld(seed, 0)
	return w.appendEvents(w.buildSetup(), w.chooseKinds(), n)
}

func (sb *scheduleBuilder) appendEvents(lines []string, happens eventKindSet, n int) []scenario.Step {
	for range n {
		lines = append(lines, sb.filterEvents(happens.pickKind(sb)(sb))...)
		lines = append(lines, "clock "+sb.randomDelay())
	}
	lines = append(lines, "heal", "restart dead")
	for _, p := range sb.pools {
		if sb.unavailable[p] {
			lines = append(lines, "pause "+poolName(p)+" end")
		}
	}
	lines = append(lines, "clock 20m", "expect calm")
	if sb.r.IntN(2) == 0 { // in-memory state is lost
		lines = append(lines, "restart", "clock 3m", "expect calm")
	}
	return parseLines(lines)
}

func parseLines(lines []string) []scenario.Step {
	var steps []scenario.Step
	for _, text := range lines {
		first, input, _ := strings.Cut(text, "\n")
		step, err := scenario.ParseStep(first)
		if err != nil {
			panic(err) // a bug in this package
		}
		step.Input = input
		steps = append(steps, step)
	}
	return steps
}

func (sb *scheduleBuilder) buildSetup() []string {
	var text strings.Builder
	fmt.Fprintf(&text, "cluster retries=%d drift=%s%s", sb.r.IntN(4), oneOf(sb, "10m", "5m"), sb.azureOptions())
	if sb.r.IntN(3) == 0 {
		sb.leaseSeconds = oneOf(sb, 15, 15, 60)
		fmt.Fprintf(&text, " lease=%ds", sb.leaseSeconds)
	}
	if sb.r.IntN(4) > 0 {
		text.WriteString(" admin")
	}
	if sb.r.IntN(3) == 0 {
		text.WriteString(" pipelined")
	}
	if sb.r.IntN(3) == 0 {
		sb.replicas = true
		text.WriteString(" replicas=2")
	}
	if sb.r.IntN(4) == 0 {
		fmt.Fprintf(&text, " share=%d", 1+sb.r.IntN(2))
	}
	sb.nodes = 3 + sb.r.IntN(5)
	fmt.Fprintf(&text, "\nnodes %d", sb.nodes)
	subscription := "s1"
	for i := range 1 + sb.r.IntN(3) {
		name := fmt.Sprintf("lb%d", i+1)
		sb.loadBalancers = append(sb.loadBalancers, name)
		sb.subscriptions[name] = subscription
		fmt.Fprintf(&text, "\nlb %s subscription=%s", name, subscription)
		if sb.r.IntN(4) == 0 {
			subscription = "s2"
		}
	}
	for i := range 1 + sb.r.IntN(6) {
		sb.addPool(&text, string(rune('a'+i)))
	}
	var services strings.Builder
	for i := 0; i < len(sb.pools); {
		n := min(1+sb.r.IntN(5)/4, len(sb.pools)-i)
		if i > 0 && sb.r.IntN(8) == 0 {
			i++ // a pool of nodes
			continue
		}
		name := fmt.Sprintf("s%d", len(sb.serviceNames)+1)
		sb.serviceNames = append(sb.serviceNames, name)
		for _, p := range sb.pools[i : i+n] {
			sb.services[name] = append(sb.services[name], p)
			sb.owner[p] = name
		}
		services.WriteString("\n" + sb.serviceStep(name))
		i += n
	}
	lines := []string{text.String() + services.String()}
	for _, p := range sb.pools {
		if sb.owner[p] == "" {
			lines = append(lines, sb.backendPoolStep(p))
		}
	}
	return lines
}

// azureOptions rarely ignores If-Match, because it weakens the guarantees.
func (sb *scheduleBuilder) azureOptions() string {
	b := behavior.RandomBehavior(sb.r.IntN)
	if sb.r.IntN(3) > 0 {
		b.PoolIfMatch = behavior.Enforced
	}
	sb.revertsLate = b.Overlap == behavior.SupersedeDiscardLate
	if sb.skipsIfMatch = b.PoolIfMatch == behavior.Ignored; b == behavior.AssumedBehavior() {
		return ""
	}
	return " " + b.String()
}

// filterEvents removes steps that no controller could handle.
func (sb *scheduleBuilder) filterEvents(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return sb.skipsIfMatch && strings.Contains(line, " late=") || sb.revertsLate && (isProcessEnd(line) || strings.HasPrefix(line, "lose-answer") || strings.HasPrefix(line, "fail on=poll"))
	})
}

func isProcessEnd(line string) bool {
	verb, _, _ := strings.Cut(line, " ")
	return line != "restart dead" && slices.Contains([]string{"kill", "restart", "freeze", "thaw", "suspend"}, verb)
}

func (sb *scheduleBuilder) serviceStep(service string) string {
	var pools []string
	for _, p := range sb.services[service] {
		if !sb.deleted[backendPoolKey(p)] {
			pools = append(pools, poolName(p))
		}
	}
	sb.serviceNodes[service] = sb.randomNodes()
	return fmt.Sprintf("service %s pools=(%s) nodes=(%s)", service, strings.Join(pools, ", "), sb.serviceNodes[service])
}

func (sb *scheduleBuilder) backendPoolStep(pool string) string {
	if s := sb.owner[pool]; s != "" {
		return fmt.Sprintf("create-backendpool %s service=%s", poolName(pool), s)
	}
	return fmt.Sprintf("create-backendpool %s nodes=(%s)", poolName(pool), sb.randomNodes())
}

func backendPoolKey(pool string) string { return "BackendPool of " + pool }

func (sb *scheduleBuilder) addPool(text *strings.Builder, name string) {
	if sb.r.IntN(8) == 0 {
		name += "-ipv6"
	}
	at := oneOf(sb, sb.loadBalancers...) + "/" + name
	sb.pools = append(sb.pools, at)
	fmt.Fprintf(text, "\npool %s", at)
	if sb.r.IntN(3) > 0 {
		fmt.Fprintf(text, " foreign=(%s)", sb.newExternalAddress())
	}
	if sb.r.IntN(4) == 0 && !strings.HasSuffix(name, "-ipv6") {
		fmt.Fprintf(text, " holds=(%s)", sb.randomNode())
	}
}

// randomDelay is mostly near the updater's timeouts, sometimes hours, as after a suspend.
func (sb *scheduleBuilder) randomDelay() string {
	switch n := sb.r.IntN(100); {
	case n < 25:
		return fmt.Sprintf("%dms", sb.r.IntN(1000))
	case n < 75:
		return fmt.Sprintf("%dms", sb.r.IntN(30_000))
	case n < 96:
		return fmt.Sprintf("%ds", sb.r.IntN(240))
	}
	return (time.Duration(1+sb.r.IntN(24)) * 5 * time.Minute).String()
}

func oneOf[T any](w *scheduleBuilder, of ...T) T { return of[w.r.IntN(len(of))] }

func poolName(pool string) string {
	_, name, _ := strings.Cut(pool, "/")
	return name
}

func (sb *scheduleBuilder) randomNode() string    { return fmt.Sprintf("n%d", 1+sb.r.IntN(sb.nodes)) }
func (sb *scheduleBuilder) randomPool() string    { return poolName(oneOf(sb, sb.pools...)) }
func (sb *scheduleBuilder) randomService() string { return oneOf(sb, sb.serviceNames...) }

func (sb *scheduleBuilder) randomNodes() string {
	var some []string
	for i := range sb.nodes {
		if sb.r.IntN(2) == 0 {
			some = append(some, fmt.Sprintf("n%d", i+1))
		}
	}
	return strings.Join(some, ", ")
}

func (sb *scheduleBuilder) newExternalAddress() string {
	sb.nextAddress++
	return fmt.Sprintf("10.9.%d.%d", sb.nextAddress/200, sb.nextAddress%200+1)
}

func loadBalancerOf(pool string) string {
	name, _, _ := strings.Cut(pool, "/")
	return name
}

func (sb *scheduleBuilder) existingServices() []string {
	return slices.DeleteFunc(slices.Clone(sb.serviceNames), func(name string) bool { return sb.deleted[name] })
}
