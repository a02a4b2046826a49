// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/armemu"
)

// setKarpenterSignals sets taint and label in one patch, before the first eviction.
func setKarpenterSignals(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
	n.Labels[corev1.LabelNodeExcludeBalancers] = "karpenter"
}

// rollouts are orderly changes of 50 Services on 20 nodes. The guide has a row with what each loses.
var rollouts = []struct {
	row     string
	options flowOptions
	gates   bool
	run     func(m *flowModel, nodes []int)
	// The most that may be written, and the longest time in seconds, by writes of 2 and 27 seconds.
	writes, seconds [2]int
}{
	{"10 Services restarted one by one", flowOptions{}, false, restart10, [2]int{40, 30}, [2]int{220, 220}},
	{"the same with gates", flowOptions{preStop: 40 * time.Second}, true, restart10, [2]int{40, 40}, [2]int{220, 1200}},
	{"50 Services, 5 at a time", flowOptions{}, false, restartAll(5), [2]int{200, 150}, [2]int{220, 220}},
	{"50 Services, 5 at a time, with gates", flowOptions{preStop: 40 * time.Second}, true, restartAll(5), [2]int{200, 200}, [2]int{220, 1000}},
	{"50 Services at once", flowOptions{}, false, restartAll(50), [2]int{200, 150}, [2]int{30, 30}},
	{"50 Services, 5 at a time, without `preStop`", flowOptions{preStop: -1}, false, restartAll(5), [2]int{200, 150}, [2]int{220, 220}},
	{"20 nodes replaced one by one", flowOptions{}, false, func(m *flowModel, _ []int) { m.replaceNodes(20, nil) }, [2]int{400, 400}, [2]int{1000, 1000}},
	{"the same, Karpenter's taint and label first", flowOptions{}, false, func(m *flowModel, _ []int) { m.replaceNodes(20, setKarpenterSignals) }, [2]int{500, 440}, [2]int{1000, 1000}},
	{"the same with a `preStop` of 40 seconds", flowOptions{preStop: 40 * time.Second}, false, func(m *flowModel, _ []int) { m.replaceNodes(20, setKarpenterSignals) }, [2]int{600, 480}, [2]int{1000, 1000}},
}

func restart10(m *flowModel, nodes []int) { m.restartServices(m.services[:10], 1, nodes) }

func restartAll(parallel int) func(m *flowModel, nodes []int) {
	return func(m *flowModel, nodes []int) { m.restartServices(m.services, parallel, nodes) }
}

// documentedFlows returns the figures of the guide by row: what is lost with writes of 2 and 27 seconds, in the mild and
// the strict reading.
func documentedFlows(t *testing.T) map[string][2][2]float64 {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/rolling-updates.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][2][2]float64{}
	for line := range strings.Lines(string(text)) {
		name, figures, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		var row [2][2]float64
		if n, _ := fmt.Sscanf(figures, "%f (%f) | %f (%f) |", &row[0][0], &row[0][1], &row[1][0], &row[1][1]); n == 4 {
			rows[name] = row
		}
	}
	return rows
}

// isAbout reports whether a count is that of the guide. Zero is exact; others vary with the order of concurrent requests,
// and are stated as the worst that was seen.
func isAbout(count, documented float64) bool {
	difference, vary := count-documented, documented/10
	return difference == 0 || documented > 0 && difference <= 10+vary && difference >= -30-vary
}

func TestFlowFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	documented := documentedFlows(t)
	if want := len(rollouts) + len(moves); len(documented) != want {
		t.Errorf("the guide has %d rows with figures, want %d", len(documented), want)
	}
	for _, rollout := range rollouts {
		for j, seconds := range []int{2, 27} {
			t.Run(fmt.Sprintf("%s/writes of %d s", rollout.row, seconds), func(t *testing.T) {
				options := Options{ReadinessGates: rollout.gates, Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: []float64{twoSecondWrites, 1}[j]}
				runStage(t, options, func(s *Stage) {
					o := rollout.options
					o.nodes, o.services, o.preStop = 20, 50, max(cmp.Or(o.preStop, 30*time.Second), 0)
					m := newFlowModel(s, o)
					begin := m.second
					rollout.run(m, m.allNodes(20))
					took := m.second - begin
					counts, row := m.finish(), documented[rollout.row][j]
					t.Logf("%s in %d s", counts, took)
					if counts.cut > 0 || !isAbout(counts.lost[0], row[0]) || !isAbout(counts.lost[1], row[1]) || counts.writes > rollout.writes[j] || took > rollout.seconds[j] {
						t.Errorf("%s in %d s; the guide has %v, and at most %d may be written in %d s", counts, took, row, rollout.writes[j], rollout.seconds[j])
					}
				})
			})
		}
	}
}
