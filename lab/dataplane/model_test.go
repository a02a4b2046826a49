// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// modelSteps are changes with the rounds of probes after each. The model's probes are right before a change, so its state
// after a change is that before the next round.
var modelSteps = []struct {
	name   string
	dead   string // nodes that are dead from here on
	pool   string // members, as putBalancer takes them
	rounds int
}{
	{"all alive", "", "n1 n2 n3", 2},
	{"n2 dies", "n2", "n1 n2 n3", 3},
	{"n3 is set Down", "n2", "n1 n2 n3=Down", 1},
	{"n3 is back", "n2", "n1 n2 n3", 1},
	{"n2 recovers", "", "n1 n2 n3", 3},
	{"n1 is set Down while it dies", "n1", "n1=Down n2 n3", 3},
	{"n2 dies, too, and n1 is Up whatever the probe", "n1 n2", "n1=Up n2 n3", 3},
	{"n1 is removed", "n1 n2", "n2 n3", 2},
	{"all die", "n1 n2 n3", "n2 n3", 3},
}

// modelState is where new flows go between two rounds of probes.
type modelState struct {
	takers string
	lost   float64 // share of new flows
}

const modelInterval = 5 * time.Second

// The virtual-time model and the sockets agree on the members that take new flows after each round of probes, and on the
// share of new flows that is lost.
func TestTheModelAgreesWithSockets(t *testing.T) {
	const flows = 100
	want := modelStates(t)
	got := socketStates(t, flows)
	if len(got) != len(want) {
		t.Fatalf("%d states, want %d", len(got), len(want))
	}
	i := 0
	for _, step := range modelSteps {
		for round := range step.rounds {
			w, g := want[i], got[i]
			// The hash spreads flows by their source ports: within six standard deviations of the share.
			tolerance := 6 * math.Sqrt(w.lost*(1-w.lost)/flows)
			if g.takers != w.takers || math.Abs(g.lost-w.lost) > tolerance {
				t.Errorf("%s, after %d rounds: sockets %+v, model %+v", step.name, round, g, w)
			}
			i++
		}
	}
}

// modelStates plays the steps with the emulator's own model, in virtual time.
func modelStates(t *testing.T) (states []modelState) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, emulator: patient.Watch(t, armemu.New(armemu.Options{})), probe: httpProbe}
		dead := map[string]bool{}
		l.putBalancer("n1", "n2", "n3")
		for _, step := range modelSteps {
			for _, n := range []string{"n1", "n2", "n3"} {
				if isDead := slices.Contains(strings.Fields(step.dead), n); isDead != dead[n] {
					dead[n] = isDead
					l.emulator.SetAlive(nodeIP(n), !isDead)
				}
			}
			l.putBalancer(strings.Fields(step.pool)...)
			for range step.rounds {
				states = append(states, modelStateOf(l.emulator.Flows(time.Now(), time.Now())))
				time.Sleep(modelInterval)
			}
		}
	})
	return states
}

func modelStateOf(flows []armemu.RuleFlows) modelState {
	var takers []string
	lost := 0
	for _, r := range flows {
		if !strings.HasSuffix(r.Rule, "/http") {
			continue
		}
		for _, a := range r.Addresses {
			if a.TakesNewFlows {
				takers = append(takers, a.Name)
				if !a.Alive {
					lost++
				}
			}
		}
	}
	if len(takers) == 0 {
		return modelState{"", 1}
	}
	return modelState{strings.Join(takers, " "), float64(lost) / float64(len(takers))}
}

// socketStates plays the steps with connections.
func socketStates(t *testing.T, flows int) (states []modelState) {
	l := newLab(t, httpProbe, BalancerOptions{})
	for _, step := range modelSteps {
		for i, n := range l.state.Nodes {
			node := n.DeepCopy()
			node.Labels = map[string]string{}
			if slices.Contains(strings.Fields(step.dead), n.Name) {
				node.Labels["dead"] = "true"
			}
			l.state.Nodes[i] = node
		}
		l.state.Nodes = append([]*corev1.Node(nil), l.state.Nodes...)
		l.apply()
		l.putBalancer(strings.Fields(step.pool)...)
		for range step.rounds {
			count := SendFlows(l.options(TCP), flows)
			var takers []string
			for _, ip := range l.balancer.Takers(TCP, front) {
				takers = append(takers, "n"+ip.String()[len("10.77.0."):])
			}
			states = append(states, modelState{strings.Join(takers, " "), float64(count.Lost) / float64(count.Attempted)})
			l.probeRounds(1)
		}
	}
	return states
}
