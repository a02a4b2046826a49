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

func (w *scheduleBuilder) appendEvents(lines []string, happens eventKindSet, n int) []scenario.Step {
	for range n {
		lines = append(lines, w.filterEvents(happens.pickKind(w)(w))...)
		lines = append(lines, "clock "+w.randomDelay())
	}
	lines = append(lines, "heal", "restart dead")
	for _, p := range w.pools {
		if w.unavailable[p] {
			lines = append(lines, "pause "+poolName(p)+" end")
		}
	}
	lines = append(lines, "clock 20m", "expect calm")
	if w.r.IntN(2) == 0 { // in-memory state is lost
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

func (w *scheduleBuilder) buildSetup() []string {
	var text strings.Builder
	fmt.Fprintf(&text, "cluster retries=%d drift=%s%s", w.r.IntN(4), oneOf(w, "10m", "5m"), w.azureOptions())
	if w.r.IntN(3) == 0 {
		w.leaseSeconds = oneOf(w, 15, 15, 60)
		fmt.Fprintf(&text, " lease=%ds", w.leaseSeconds)
	}
	if w.r.IntN(4) > 0 {
		text.WriteString(" admin")
	}
	if w.r.IntN(3) == 0 {
		text.WriteString(" pipelined")
	}
	if w.r.IntN(3) == 0 {
		w.replicas = true
		text.WriteString(" replicas=2")
	}
	if w.r.IntN(4) == 0 {
		fmt.Fprintf(&text, " share=%d", 1+w.r.IntN(2))
	}
	w.nodes = 3 + w.r.IntN(5)
	fmt.Fprintf(&text, "\nnodes %d", w.nodes)
	subscription := "s1"
	for i := range 1 + w.r.IntN(3) {
		name := fmt.Sprintf("lb%d", i+1)
		w.loadBalancers = append(w.loadBalancers, name)
		w.subscriptions[name] = subscription
		fmt.Fprintf(&text, "\nlb %s subscription=%s", name, subscription)
		if w.r.IntN(4) == 0 {
			subscription = "s2"
		}
	}
	for i := range 1 + w.r.IntN(6) {
		w.addPool(&text, string(rune('a'+i)))
	}
	var services strings.Builder
	for i := 0; i < len(w.pools); {
		n := min(1+w.r.IntN(5)/4, len(w.pools)-i)
		if i > 0 && w.r.IntN(8) == 0 {
			i++ // a pool of nodes
			continue
		}
		name := fmt.Sprintf("s%d", len(w.serviceNames)+1)
		w.serviceNames = append(w.serviceNames, name)
		for _, p := range w.pools[i : i+n] {
			w.services[name] = append(w.services[name], p)
			w.owner[p] = name
		}
		services.WriteString("\n" + w.serviceStep(name))
		i += n
	}
	lines := []string{text.String() + services.String()}
	for _, p := range w.pools {
		if w.owner[p] == "" {
			lines = append(lines, w.backendPoolStep(p))
		}
	}
	return lines
}

// azureOptions rarely ignores If-Match, because it weakens the guarantees.
func (w *scheduleBuilder) azureOptions() string {
	b := behavior.RandomBehavior(w.r.IntN)
	if w.r.IntN(3) > 0 {
		b.PoolIfMatch = behavior.Enforced
	}
	w.revertsLate = b.Overlap == behavior.SupersedeDiscardLate
	if w.skipsIfMatch = b.PoolIfMatch == behavior.Ignored; b == behavior.AssumedBehavior() {
		return ""
	}
	return " " + b.String()
}

// filterEvents removes steps that no controller could handle.
func (w *scheduleBuilder) filterEvents(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return w.skipsIfMatch && strings.Contains(line, " late=") || w.revertsLate && (isProcessEnd(line) || strings.HasPrefix(line, "lose-answer") || strings.HasPrefix(line, "fail on=poll"))
	})
}

func isProcessEnd(line string) bool {
	verb, _, _ := strings.Cut(line, " ")
	return line != "restart dead" && slices.Contains([]string{"kill", "restart", "freeze", "thaw", "suspend"}, verb)
}

func (w *scheduleBuilder) serviceStep(service string) string {
	var pools []string
	for _, p := range w.services[service] {
		if !w.deleted[backendPoolKey(p)] {
			pools = append(pools, poolName(p))
		}
	}
	w.serviceNodes[service] = w.randomNodes()
	return fmt.Sprintf("service %s pools=(%s) nodes=(%s)", service, strings.Join(pools, ", "), w.serviceNodes[service])
}

func (w *scheduleBuilder) backendPoolStep(pool string) string {
	if s := w.owner[pool]; s != "" {
		return fmt.Sprintf("create-backendpool %s service=%s", poolName(pool), s)
	}
	return fmt.Sprintf("create-backendpool %s nodes=(%s)", poolName(pool), w.randomNodes())
}

func backendPoolKey(pool string) string { return "BackendPool of " + pool }

func (w *scheduleBuilder) addPool(text *strings.Builder, name string) {
	if w.r.IntN(8) == 0 {
		name += "-ipv6"
	}
	at := oneOf(w, w.loadBalancers...) + "/" + name
	w.pools = append(w.pools, at)
	fmt.Fprintf(text, "\npool %s", at)
	if w.r.IntN(3) > 0 {
		fmt.Fprintf(text, " foreign=(%s)", w.newExternalAddress())
	}
	if w.r.IntN(4) == 0 && !strings.HasSuffix(name, "-ipv6") {
		fmt.Fprintf(text, " holds=(%s)", w.randomNode())
	}
}

// randomDelay is mostly near the updater's timeouts, sometimes hours, as after a suspend.
func (w *scheduleBuilder) randomDelay() string {
	switch n := w.r.IntN(100); {
	case n < 25:
		return fmt.Sprintf("%dms", w.r.IntN(1000))
	case n < 75:
		return fmt.Sprintf("%dms", w.r.IntN(30_000))
	case n < 96:
		return fmt.Sprintf("%ds", w.r.IntN(240))
	}
	return (time.Duration(1+w.r.IntN(24)) * 5 * time.Minute).String()
}

func oneOf[T any](w *scheduleBuilder, of ...T) T { return of[w.r.IntN(len(of))] }

func poolName(pool string) string {
	_, name, _ := strings.Cut(pool, "/")
	return name
}

func (w *scheduleBuilder) randomNode() string    { return fmt.Sprintf("n%d", 1+w.r.IntN(w.nodes)) }
func (w *scheduleBuilder) randomPool() string    { return poolName(oneOf(w, w.pools...)) }
func (w *scheduleBuilder) randomService() string { return oneOf(w, w.serviceNames...) }

func (w *scheduleBuilder) randomNodes() string {
	var some []string
	for i := range w.nodes {
		if w.r.IntN(2) == 0 {
			some = append(some, fmt.Sprintf("n%d", i+1))
		}
	}
	return strings.Join(some, ", ")
}

func (w *scheduleBuilder) newExternalAddress() string {
	w.nextAddress++
	return fmt.Sprintf("10.9.%d.%d", w.nextAddress/200, w.nextAddress%200+1)
}

func loadBalancerOf(pool string) string {
	name, _, _ := strings.Cut(pool, "/")
	return name
}

func (w *scheduleBuilder) existingServices() []string {
	return slices.DeleteFunc(slices.Clone(w.serviceNames), func(name string) bool { return w.deleted[name] })
}
