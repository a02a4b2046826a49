// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/lab/armemu"
)

func setInternal(svc *corev1.Service) {
	setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
}
func setFirst(svc *corev1.Service) {
	setAnnotation(svc, annotation+"azure-load-balancer-configurations", clusterName)
}
func setSecond(svc *corev1.Service) {
	setAnnotation(svc, annotation+"azure-load-balancer-configurations", secondName)
}

// moves are changes that give a Service another load balancer or pool. The guide has a row with what each loses, and the
// most that may be written.
var moves = []struct {
	row    string
	from   []func(*corev1.Service)
	to     func(*corev1.Service)
	writes int
}{
	{"a public Service moves to another load balancer", nil, setSecond, 5},
	{"an internal Service moves to another load balancer", []func(*corev1.Service){setInternal}, setSecond, 5},
	{"a public Service becomes internal", nil, setInternal, 5},
	{"an internal Service becomes public", []func(*corev1.Service){setInternal}, func(svc *corev1.Service) { delete(svc.Annotations, annotation+"azure-load-balancer-internal") }, 5},
	{"`Local` becomes `Cluster`", nil, setCluster, 5},
	{"`Cluster` becomes `Local`", []func(*corev1.Service){setCluster}, func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }, 5},
}

func setCluster(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyCluster) }

// runMove runs a move of the first of five Services on six nodes for five minutes. moved is called once it is requested.
func runMove(t *testing.T, seconds int, from []func(*corev1.Service), to, moved func(m *flowModel)) {
	options := Options{Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: map[int]float64{2: twoSecondWrites, 27: 1}[seconds], Configure: func(c *config.Config) {
		c.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, {Name: secondName}}
	}}
	runStage(t, options, func(s *Stage) {
		m := newFlowModel(s, flowOptions{nodes: 6, services: 5, edit: func(svc *corev1.Service) {
			setFirst(svc)
			for _, edit := range from {
				edit(svc)
			}
		}})
		failOn(s.AddService("shop/beside", setSecond)) // another Service of the second load balancer
		m.passSeconds(60)
		m.total = flowCounts{}
		to(m)
		moved(m)
	})
}

// changeFirst changes the first Service.
func changeFirst(change func(*corev1.Service)) func(m *flowModel) {
	return func(m *flowModel) {
		failOn(m.ChangeService(m.services[0].key, change))
		svc := &corev1.Service{}
		failOn(m.userClient.Get(ctx, parseKey(m.services[0].key), svc))
		m.services[0].isCluster = svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyCluster
	}
}

// rulesOf returns the load balancers that forward to a Service.
func (m *flowModel) rulesOf(v *serviceSim) (loadBalancers []string) {
	for _, r := range m.emulator.ForwardingRules() {
		path := strings.Split(r.Rule, "/")
		if owner, _, _ := strings.Cut(path[len(path)-1], "-"); m.serviceOwners[owner] == v.key {
			loadBalancers = append(loadBalancers, path[len(path)-3])
		}
	}
	return loadBalancers
}

// isAtMost reports whether a count is at most that of the guide, within the order of concurrent requests.
func isAtMost(count, documented float64) bool {
	return count <= documented || isAbout(count, documented)
}

func TestMovesOfServices(t *testing.T) {
	documented := documentedFlows(t)
	for _, move := range moves {
		for j, seconds := range []int{2, 27} {
			t.Run(fmt.Sprintf("%s/writes of %d s", move.row, seconds), func(t *testing.T) {
				runMove(t, seconds, move.from, changeFirst(move.to), func(m *flowModel) {
					counts := m.finish()
					row, known := documented[move.row]
					if !known || !isAtMost(counts.lost[0], row[j][0]) || !isAtMost(counts.lost[1], row[j][1]) || counts.writes > move.writes {
						t.Errorf("%s; the guide has %v, and at most %d may be written", counts, row[j], move.writes)
					}
					if at := m.rulesOf(m.services[0]); len(at) != 1 {
						t.Errorf("it is on %v", at)
					}
				})
			})
		}
	}
}

// The process ends at any time of a move: the next one completes it, and no flow is lost.
func TestAMoveThatAnotherProcessCompletes(t *testing.T) {
	for _, after := range []int{1, 4, 12, 20, 60} {
		t.Run(fmt.Sprintf("after %d s", after), func(t *testing.T) {
			runMove(t, 2, []func(*corev1.Service){setInternal}, changeFirst(setSecond), func(m *flowModel) {
				m.passSeconds(after)
				m.KillProcess(0)
				counts := m.finish()
				if at := m.rulesOf(m.services[0]); len(at) != 1 || at[0] != secondName+"-internal" || counts.lost[0] > 0 {
					t.Errorf("it is on %v; %s", at, counts)
				}
			})
		})
	}
}
