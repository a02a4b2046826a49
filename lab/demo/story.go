// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/humanize"
)

// initialNodes is the initial number of nodes.
const initialNodes = 3

// allSteps returns the steps in order: the first two acts and real connections, or all five acts. The number of pods scales with
// the nodes.
func allSteps(full bool) []step {
	explanation := append(firstActs(), connectionStep())
	if full {
		return append(explanation, lastActs()...)
	}
	return explanation
}

func firstActs() []step {
	return []step{
		{title: "First act: pods and nodes move.", name: "deploy", compared: &isolatedChanges, usual: 5, run: (*stage).createWorkloads, check: (*stage).printAddresses},
		{name: "nodes join", usual: 1, run: (*stage).addNodes},
		{name: "scale up", usual: 4, run: (*stage).scaleOut},
		{name: "rolling restart", usual: 3, run: (*stage).restartWorkload},
		{name: "node lost", compared: &rollingNodes, usual: 5, run: (*stage).failNode},
		{name: "node drained", compared: &poolsDrained, usual: 3, run: (*stage).drainNode},
		{name: "controller killed", usual: 15, run: (*stage).killController},
		{name: "calm before the storm", usual: 6, run: (*stage).waitIdle},
		{name: "storm", usual: 18, run: (*stage).runStorm, check: (*stage).checkStormEvents},
		{name: "service gone", usual: 3, run: (*stage).removeService, resultText: "its frontend, rule, probe, pool and public IP are gone"},
		{title: "Second act: Services come and go.", name: "services appear", compared: &manyServices, usual: 7, run: (*stage).createServices},
		{name: "annotation changes", usual: 2, run: (*stage).changeAnnotation},
		{name: "annotation wrong", usual: 1, run: (*stage).setInvalidAnnotation, check: (*stage).checkInvalidAnnotation},
		{name: "services go", usual: 5, run: (*stage).deleteServices},
		{name: "calm", usual: 6, run: (*stage).waitIdle},
	}
}

func lastActs() []step {
	return []step{
		{title: "Third act: spot machines are evicted.", name: "spot eviction", usual: 12, run: (*stage).evictSpotMachine},
		{name: "the same without admin states", usual: 20, run: (*stage).evictUnhandled},
		{title: "Fourth act: a Service is published to other networks.", name: "service published", usual: 18, run: (*stage).publishService},
		{title: "Fifth act: a Gateway is served as a Service.", name: "gateway served", usual: 9, needsGatewayAPI: true, run: (*stage).serveGateway, resultText: "its frontend, rule, probe and public IP are deleted"},
	}
}

func (s *stage) createWorkloads(ctx context.Context) error {
	s.printAction("Deployments web, api and db, each with a Service of type LoadBalancer, class " + loadBalancerClass)
	for i, w := range allWorkloads {
		if err := s.cluster.createWorkload(ctx, w, initialNodes-min(i, 1), nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) printAddresses(context.Context) error {
	services, err := s.desired.loadBalancerServices()
	var parts []string
	for _, service := range services {
		ip, _ := serviceAddress(service)
		parts = append(parts, fmt.Sprintf("%s has %s", service.Name, ip))
	}
	s.print.printDetail(strings.Join(parts, ", "))
	return err
}

func (s *stage) addNodes(ctx context.Context) error {
	s.printAction("%d nodes become %d, still without pods: nothing is to be written", initialNodes, s.nodes)
	for i := initialNodes + 1; i <= s.nodes; i++ {
		if err := s.cluster.addNode(ctx, i); err != nil {
			return err
		}
	}
	// The pools are in sync already: wait, so that a wrong write would show.
	return sleepContext(ctx, time.Second)
}

func (s *stage) scaleOut(ctx context.Context) error {
	web, api, db := s.nodes*7/10, s.nodes/2, s.nodes*3/10
	s.printAction("web scales to %d pods, api to %d, db to %d", web, api, db)
	return s.scaleAll(ctx, web, api, db)
}

func (s *stage) scaleAll(ctx context.Context, replicas ...int) error {
	for i, n := range replicas {
		if err := s.cluster.scaleDeployment(ctx, allWorkloads[i].name, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) restartWorkload(ctx context.Context) error {
	s.printAction("kubectl rollout restart deployment web: every pod moves")
	return s.cluster.restartDeployment(ctx, "web")
}

func (s *stage) failNode(ctx context.Context) error {
	node := s.randomMember("web")
	s.printAction("%s loses its power: its pods turn unready and are replaced", node)
	if err := s.cluster.stopMachine(ctx, node); err != nil {
		return err
	}
	if err := s.waitNodeRemoved(ctx, node); err != nil {
		return err
	}
	s.printAction("%s is deleted", node)
	return s.cluster.deleteObject(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
}

// waitNodeRemoved waits until no pool wants the node and its pods are replaced.
func (s *stage) waitNodeRemoved(ctx context.Context, node string) error {
	gone := func() bool {
		return !slices.ContainsFunc(allWorkloads, func(w workload) bool { return slices.Contains(s.observer.memberNames(w.name), node) })
	}
	if err := s.waitFor(ctx, "the watch does not tell that the pods of "+node+" are unready", gone); err != nil {
		return err
	}
	return s.waitInSync(ctx)
}

func (s *stage) drainNode(ctx context.Context) error {
	node := s.randomMember("api")
	if err := s.cluster.cordonNode(ctx, node); err != nil {
		return err
	}
	evicted, err := s.cluster.evictPods(ctx, node)
	if err != nil {
		return err
	}
	s.printAction("kubectl drain %s: %s move", node, humanize.FormatCount(evicted, "pod"))
	return nil
}

// killController kills the controller after it wrote the first due pool, changes the cluster, and
// restarts it.
func (s *stage) killController(ctx context.Context) error {
	web, api, db := s.nodes*4/10, s.nodes*8/10, s.nodes*5/10
	s.printAction("web scales to %d pods, api to %d, db to %d", web, api, db)
	writes := s.observer.currentTraffic().Writes
	if err := s.scaleAll(ctx, web, api, db); err != nil {
		return err
	}
	err := s.waitFor(ctx, "no write came", func() bool { return s.observer.currentTraffic().Writes > writes })
	if err != nil {
		return err
	}
	s.lab.controller.latest().Kill()
	s.print.printLine(redText, "weir", "killed with -9 while Azure works on its first write")
	web = s.nodes * 6 / 10
	s.printAction("while nobody looks, web scales to %d", web)
	if err := s.scaleAll(ctx, web); err != nil {
		return err
	}
	if err := s.addForeignMember(ctx, conflictPool, foreignAddress, "somebody-elses"); err != nil {
		return err
	}
	if err := sleepContext(ctx, 1500*time.Millisecond); err != nil {
		return err
	}
	s.progress.nextLine(s.print, time.Now(), s.observer.poolStates())
	if err := s.lab.startController(ctx); err != nil {
		return err
	}
	s.print.printLine(plainText, "weir", fmt.Sprintf("started again, process %d; it leads when the Lease of the first one expires, within %.0f s",
		s.lab.controller.latest().ProcessID(), leaseDuration.Seconds()))
	return nil
}

// addForeignMember adds a foreign address with the second writer; it must remain.
func (s *stage) addForeignMember(ctx context.Context, pool string, ip netip.Addr, name string) error {
	if err := newSecondWriter(s.lab.endpoint).addAddress(ctx, pool, name, ip); err != nil {
		return err
	}
	s.observer.addForeign(strings.TrimPrefix(pool, namespace+"-"), ip, name)
	s.print.printLine(yellowText, "writer", fmt.Sprintf("puts %s into %s by a PUT of the pool", ip, pool))
	return nil
}

// waitFor waits for a condition until the step's deadline.
func (s *stage) waitFor(ctx context.Context, otherwise string, happened func() bool) error {
	return s.waitForResult(ctx, otherwise, func() (bool, error) { return happened(), nil })
}

// waitForResult is the same for a condition that can fail.
func (s *stage) waitForResult(ctx context.Context, otherwise string, happened func() (bool, error)) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.deadline, &syncTimeoutError{s.deadline, nil})
	defer cancel()
	err := pollUntil(limited, pollInterval/5, happened)
	if _, late := errors.AsType[*syncTimeoutError](err); late {
		return &syncTimeoutError{s.deadline, append([]string{otherwise}, s.explainOutOfSync(ctx, "", s.observer.poolStates())...)}
	}
	return err
}

func (s *stage) removeService(ctx context.Context) error {
	s.printAction("Service db is deleted")
	err := s.cluster.deleteObject(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}})
	if err != nil {
		return err
	}
	gone := func() bool { return len(s.observer.memberNames("db")) == 0 }
	return s.waitFor(ctx, "the watch does not tell that Service db is gone", gone)
}

// waitIdle changes nothing for longer than one interval.
func (s *stage) waitIdle(ctx context.Context) error {
	length := updateInterval + time.Second
	s.printAction("nothing happens for %.0f seconds, and nothing may be written", length.Seconds())
	writes := s.observer.currentTraffic().Writes
	if err := sleepContext(ctx, length); err != nil {
		return err
	}
	if n := s.observer.currentTraffic().Writes - writes; n > 0 {
		s.addNote(humanize.FormatCount(n, "write") + " though nothing had changed; 0 are usual")
	}
	return nil
}

// randomMember returns a node of a workload's pool, chosen by the seed.
func (s *stage) randomMember(name string) string {
	members := s.observer.memberNames(name)
	return members[s.random.IntN(len(members))]
}
