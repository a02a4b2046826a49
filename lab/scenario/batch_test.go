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

// Obstacles to a batched update lose nothing: the final content equals that of separate updates, in
// every Azure behavior. The checks cover foreign addresses, budgets and Retry-After.
func TestWholeWritesLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, story := range []struct {
		name    string
		ignores bool // Azure leaves pools unchanged in a load balancer write
		steps   []string
		then    []string // steps after a minute, and their expectations
		// together and apart are the expected writes with and without batched updates.
		together, apart int
	}{{
		name: "a poisoned pool", // Azure rejects it in any write
		steps: []string{
			"fail on=PUT whole=kubernetes status=400 code=Poison times=1", "fail on=PUT pool=p13 status=400 code=Poison for=150s", "taint n1",
		},
		together: 1 + 49 + 7, apart: 49 + 7,
	}, {
		name:     "a parked pool",
		steps:    []string{"throttle on=PUT pool=p13 code=Busy retry-after=500 times=1", "scale s13 nodes=(n1, n3)", "clock 5s", "taint n1"},
		then:     []string{"expect parked=p13", "expect pool=p13 holds=(n1, n2)"},
		together: 1 + 1, apart: 1 + 49,
	}, {
		name: "another writer between the read and the write", // costs a retry, like 412 for single writes
		steps: []string{
			"slow on=PUT whole=kubernetes by=5s times=1", "scale " + serviceRange(0, 50) + " nodes=(n2, n3)", "clock 500ms",
			"conflict pool=p13 add=10.9.1.1", "conflict pool=p12 down=n2",
		},
		together: 1 + 1, apart: 50 + 1, // which is overtaken
	}, {
		name: "an Azure that ignores addresses in a load balancer", ignores: true,
		steps:    []string{"taint n1"},
		together: 50, apart: 50,
	}, {
		name: "addresses of others in pools that are not due",
		steps: []string{
			"conflict pool=p30 add=10.9.1.1", "conflict pool=p31 down=n1", "scale " + serviceRange(0, 20) + " nodes=(n2, n3)", "clock 500ms", "conflict pool=p32 add=10.9.1.2",
		},
		then:     []string{"expect pool=p31 holds=(n1, n2)"},
		together: 1 + 1, apart: 20 + 1,
	}, {
		name:     "a write that fails in the end", // what it left out of effect is written again
		steps:    []string{"fail on=operation whole=kubernetes code=Other kept times=1", "scale " + serviceRange(0, 20) + " nodes=(n2, n3)"},
		together: 1 + 20, apart: 20,
	}} {
		t.Run(story.name, func(t *testing.T) {
			var ends [4]string
			for i, setting := range []string{"whole", "", "auto", "auto ignores"} {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t)
					with, ignores := strings.CutSuffix(setting, " ignores")
					with += " unchangedWriteEtag=renewed" // otherwise another write that meets 412 is counted
					if !story.ignores && !ignores {
						with += " wholeWriteAddresses=taken wholeWriteAdminStates=taken"
					}
					runStep(t, s, fiftyPools(with), "clock 4m quiet", "expect level")
					s.takeCounts()
					runStep(t, s, story.steps...)
					runStep(t, s, "clock 4m quiet")
					writes := s.takeCounts()["PUT"]
					runStep(t, s, story.then...)
					runStep(t, s, "clock 15m quiet", "expect calm")
					ends[i], _ = doStatus(s, newReader(Step{Verb: "status"}))
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					if want := []int{story.together, story.apart, writes, writes}[i]; writes != want {
						t.Errorf("%d writes, want %d, with the setting %q", writes, want, setting)
					}
				})
			}
			for _, end := range ends {
				if end != ends[1] {
					t.Errorf("with whole writes\n%s\nand without\n%s", end, ends[1])
				}
			}
		})
	}
}
