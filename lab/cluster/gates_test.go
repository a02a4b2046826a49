// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/pods"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/lab/armemu"
)

// gateSim is what is known of the readiness gates of all pods.
type gateSim struct {
	created  int
	openings []opening
}

// opening is a gate that opened.
type opening struct {
	at time.Time
	// waited is for how long only the gate kept the pod from being ready.
	waited time.Duration
	reason pods.Reason
}

// startPod starts a pod of a Service, with a gate if the processes open these.
func (m *flowModel) startPod(v *serviceSim, node int) *podSim {
	p := &podSim{node: node, startedAt: time.Now().Add(podStartup)}
	v.pods = append(v.pods, p)
	if !m.opts.ReadinessGates {
		return p
	}
	m.gates.created++
	p.name = fmt.Sprintf("pod-%d", m.gates.created)
	at := parseKey(v.key)
	failOn(m.userClient.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: p.name, Labels: map[string]string{"app": at.Name, metadata.GateLabel: metadata.GateLabelValue}},
		Spec:       corev1.PodSpec{NodeName: nodeName(node), ReadinessGates: []corev1.PodReadinessGate{{ConditionType: metadata.GateInPool}}},
	}))
	return p
}

// updateGates reports started containers, reads the gates that opened and deletes the pods that have ended.
func (m *flowModel) updateGates(now time.Time, isDue func(time.Time) bool) {
	for _, v := range m.services {
		for _, p := range v.pods {
			switch {
			case p.name == "":
			case isDue(p.goneAt):
				failOn(m.userClient.Delete(ctx, m.gatedPod(v, p)))
			case p.openAt.IsZero():
				m.updateGate(v, p, now, isDue(p.startedAt))
			}
		}
	}
}

func (m *flowModel) gatedPod(v *serviceSim, p *podSim) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: parseKey(v.key).Namespace, Name: p.name}}
}

func (m *flowModel) updateGate(v *serviceSim, p *podSim, now time.Time, starts bool) {
	got := m.gatedPod(v, p)
	failOn(m.userClient.Get(ctx, client.ObjectKeyFromObject(got), got))
	if starts {
		got.Status.Conditions = append(got.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)})
		failOn(m.userClient.Status().Update(ctx, got))
	}
	at := slices.IndexFunc(got.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == metadata.GateInPool && c.Status == corev1.ConditionTrue
	})
	if at < 0 {
		return
	}
	p.openAt = now
	m.gates.openings = append(m.gates.openings, opening{now, max(now.Sub(p.startedAt), 0), pods.Reason(got.Status.Conditions[at].Reason)})
}

// longestWait returns the longest time for which only its gate kept a pod from being ready, of gates that opened since.
func (g gateSim) longestWait(since time.Time) (longest time.Duration) {
	for _, o := range g.openings {
		if !o.at.Before(since) {
			longest = max(longest, o.waited)
		}
	}
	return longest
}

// reasons counts the gates that opened since by reason.
func (g gateSim) reasons(since time.Time) map[pods.Reason]int {
	counts := map[pods.Reason]int{}
	for _, o := range g.openings {
		if !o.at.Before(since) {
			counts[o.reason]++
		}
	}
	return counts
}

// leader returns the number of the replica that leads.
func (s *Stage) leader() int {
	return slices.IndexFunc(s.replicas, func(r *replica) bool {
		p := r.process.Load()
		return !p.killed.Load() && p.renewedAt.Load() != notRenewed
	})
}

// passSeconds advances the model.
func (m *flowModel) passSeconds(n int) {
	for range n {
		m.passSecond()
	}
}

// restartUntil restarts the Services, 5 at a time, until a time.
func (m *flowModel) restartUntil(end time.Time, nodes []int) {
	for time.Now().Before(end) {
		m.restartServices(m.services, 5, nodes)
		m.passSeconds(int(m.preStop/time.Second) + 1)
	}
}

// The leader is killed in each of four rolling restarts: no flow is lost, no serving member is removed, and no gate opens
// without proof. Within 30 seconds the next leader writes a pool.
func TestGatesWhenTheLeaderIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	runStage(t, Options{Replicas: 2, ReadinessGates: true, Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: twoSecondWrites}, func(s *Stage) {
		m := newFlowModel(s, flowOptions{nodes: 8, services: 20, preStop: 30 * time.Second})
		begin, nodes, paused := time.Now(), m.allNodes(8), time.Duration(0)
		for _, after := range []int{3, 7, 12, 20} {
			var killed time.Time
			m.after(after, func() { s.KillProcess(s.leader()); killed = time.Now() })
			m.restartServices(m.services, 5, nodes)
			m.passSeconds(60)
			writes := s.emulator.Calls(func(c armemu.Call) bool { return c.Kind == armemu.KindPut && c.Time.After(killed) })
			paused = max(paused, writes[0].Time.Sub(killed))
		}
		counts, waited, opened := m.finish(), m.gates.longestWait(begin), m.gates.reasons(begin)
		t.Log(counts, paused, waited, opened)
		if counts.lost != [2]float64{} || counts.cut > 0 || len(opened) != 1 || opened[pods.InPool] != 4*2*20 {
			t.Errorf("%s, %v gates opened", counts, opened)
		}
		if paused > 30*time.Second || waited > 45*time.Second {
			t.Errorf("no pool was written for %s, and a gate kept its pod from being ready for %s", paused, waited)
		}
	})
}

// Azure does not respond for an hour of rolling restarts: a gate keeps no pod from being ready for more than two minutes. After
// it, gates wait for Azure again, and no flow is lost.
func TestGatesWhenAzureIsAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	const sampled = 2 * time.Second // the model reads gates once a second
	runStage(t, Options{ReadinessGates: true, Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: twoSecondWrites}, func(s *Stage) {
		m := newFlowModel(s, flowOptions{nodes: 8, services: 10, preStop: 30 * time.Second})
		begin, nodes := time.Now(), m.allNodes(8)
		failOn(s.AzureFaults("{name: away, match: {}, action: {drop: true}}"))
		m.restartUntil(begin.Add(time.Hour), nodes)
		waited, opened := m.gates.longestWait(begin), m.gates.reasons(begin)
		t.Log("away:", waited, opened)
		if waited > 2*time.Minute+sampled || opened[pods.Timeout] == 0 || len(opened) > 2 {
			t.Errorf("away: a gate kept its pod from being ready for %s; %v opened", waited, opened)
		}
		failOn(s.AzureFaults())
		failOn(s.WaitInSync(10 * time.Minute))
		m.passSeconds(60)
		m.total, begin = flowCounts{}, time.Now()
		m.restartUntil(begin.Add(time.Minute), nodes)
		counts, opened := m.finish(), m.gates.reasons(begin)
		t.Log("back:", counts, opened)
		if counts.lost != [2]float64{} || counts.cut > 0 || len(opened) != 1 || opened[pods.InPool] == 0 {
			t.Errorf("back: %s, %v gates opened", counts, opened)
		}
	})
}
