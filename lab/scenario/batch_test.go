// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// fiftyPools is a world of fifty pools on one load balancer; every third has a foreign address. Two of
// three nodes host endpoints.
func fiftyPools(settings string) string {
	world := "cluster admin drift=10m " + settings + "\nnodes 3\nlb kubernetes"
	var services strings.Builder
	for i := range 50 {
		world += fmt.Sprintf("\npool kubernetes/p%02d", i)
		if i%3 == 0 {
			world += fmt.Sprintf(" foreign=(10.9.0.%d)", i+1)
		}
		fmt.Fprintf(&services, "\nservice s%02d pools=(p%02d) nodes=(n1, n2)", i, i)
	}
	return world + services.String()
}

func serviceRange(from, to int) string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("s%02d", i))
	}
	return strings.Join(names, " ")
}

// Obstacles to overlapping writes lose nothing, however Azure answers these: the final content equals that of
// writes one by one, and each pool is written at most once more. The checks cover foreign addresses, budgets
// and Retry-After.
func TestOverlappingWritesLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, explanation := range []struct {
		name  string
		steps []string
		then  []string // steps after a minute, and their expectations
		most  int      // writes
	}{{
		name:  "a poisoned pool", // Azure rejects it
		steps: []string{"fail on=PUT pool=p13 status=400 code=Poison for=150s", "taint n1"},
		most:  2*49 + 2*7,
	}, {
		name:  "a parked pool",
		steps: []string{"throttle on=PUT pool=p13 code=Busy retry-after=500 times=1", "scale s13 nodes=(n1, n3)", "clock 5s", "taint n1"},
		then:  []string{"expect parked=p13", "expect pool=p13 holds=(n1, n2)"},
		most:  1 + 2*49,
	}, {
		name: "another writer between the read and the write",
		steps: []string{
			"scale " + serviceRange(0, 50) + " nodes=(n2, n3)", "clock 500ms", "conflict pool=p43 add=10.9.1.1", "conflict pool=p42 down=n2",
		},
		most: 2*50 + 4,
	}, {
		name: "addresses of others in pools that are not due",
		steps: []string{
			"conflict pool=p30 add=10.9.1.1", "conflict pool=p31 down=n1", "scale " + serviceRange(0, 20) + " nodes=(n2, n3)", "clock 500ms", "conflict pool=p32 add=10.9.1.2",
		},
		then: []string{"expect pool=p31 holds=(n1, n2)"},
		most: 2*20 + 2,
	}} {
		t.Run(explanation.name, func(t *testing.T) {
			ends := map[string]string{}
			settings := []string{"", "pipelined overlap=supersede", "pipelined overlap=supersede-discard", "pipelined overlap=supersede-discard-late", "pipelined overlap=lock-429", "pipelined overlap=conflict-409", "pipelined overlap=mixed"}
			for _, setting := range settings {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t)
					runStep(t, s, fiftyPools(setting+" unchangedWriteEtag=renewed"), "clock 6m quiet", "expect in-sync")
					s.takeCounts()
					runStep(t, s, explanation.steps...)
					runStep(t, s, "clock 4m quiet")
					writes := s.takeCounts()["PUT"]
					runStep(t, s, explanation.then...)
					runStep(t, s, "clock 15m quiet", "expect calm")
					ends[setting], _ = doStatus(s, newReader(Step{Verb: "status"}))
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					if writes > explanation.most {
						t.Errorf("%d writes, want at most %d, with the setting %q", writes, explanation.most, setting)
					}
				})
			}
			for _, setting := range settings {
				if ends[setting] != ends[""] {
					t.Errorf("with %s\n%s\none by one\n%s", setting, ends[setting], ends[""])
				}
			}
		})
	}
}
