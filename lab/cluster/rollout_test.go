// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
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

// rollouts are orderly changes of 50 Services with two pods each on 20 nodes.
var rollouts = []struct {
	name    string
	preStop time.Duration
	run     func(m *flowModel, nodes []int)
	// The most that may be lost, by writes of 2 and 27 seconds and then by reading of the probe, and written.
	lost   [2][2]float64
	writes [2]int
}{
	{"10 Services one by one", 30 * time.Second, func(m *flowModel, nodes []int) { m.restartServices(m.services[:10], 1, nodes) }, [2][2]float64{{0, 0}, {10, 60}}, [2]int{40, 30}},
	{"50 Services, 5 at a time", 30 * time.Second, func(m *flowModel, nodes []int) { m.restartServices(m.services, 5, nodes) }, [2][2]float64{{0, 0}, {0, 120}}, [2]int{200, 150}},
	{"50 Services at once", 30 * time.Second, func(m *flowModel, nodes []int) { m.restartServices(m.services, 50, nodes) }, [2][2]float64{{0, 0}, {0, 0}}, [2]int{200, 150}},
	{"5 at a time without preStop", 0, func(m *flowModel, nodes []int) { m.restartServices(m.services, 5, nodes) }, [2][2]float64{{100, 100}, {550, 550}}, [2]int{200, 150}},
	{"20 nodes", 30 * time.Second, func(m *flowModel, _ []int) { m.replaceNodes(20, nil) }, [2][2]float64{{0, 0}, {0, 80}}, [2]int{400, 400}},
	{"20 nodes in Karpenter's order", 30 * time.Second, func(m *flowModel, _ []int) { m.replaceNodes(20, setKarpenterSignals) }, [2][2]float64{{0, 0}, {0, 60}}, [2]int{440, 440}},
}

func measureFlows(t *testing.T, scale float64, preStop time.Duration, run func(m *flowModel, nodes []int)) (counts flowCounts) {
	t.Helper()
	runStage(t, Options{Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: scale}, func(s *Stage) {
		m := newFlowModel(s, flowOptions{nodes: 20, services: 50, preStop: preStop})
		run(m, m.allNodes(20))
		counts = m.finish()
	})
	return counts
}

func TestFlowFigures(t *testing.T) {
	for i, rollout := range rollouts {
		if i > 0 && testing.Short() {
			break
		}
		for j, seconds := range []int{2, 27} {
			t.Run(fmt.Sprintf("%s/writes of %d s", rollout.name, seconds), func(t *testing.T) {
				counts := measureFlows(t, []float64{twoSecondWrites, 1}[j], rollout.preStop, rollout.run)
				t.Log(counts)
				if counts.cut > 0 || counts.lost[0] > rollout.lost[j][0] || counts.lost[1] > rollout.lost[j][1] || counts.writes > rollout.writes[j] {
					t.Errorf("%s; at most %v may be lost, and %d written", counts, rollout.lost[j], rollout.writes[j])
				}
			})
		}
	}
}
