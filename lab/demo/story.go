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

	"weir.dev/weir/internal/words"
)

// firstNodes is the initial number of nodes.
const firstNodes = 3

// story returns the steps in order: the first two acts, or all four. The number of pods scales with
// the nodes.
func story(full bool) []step {
	if full {
		return append(twoActs(), laterActs()...)
	}
	return twoActs()
}

func twoActs() []step {
	return []step{
		{heading: "First act: pods and nodes move.", name: "deploy", act: (*stage).deploy, check: (*stage).showAddresses},
		{name: "nodes join", act: (*stage).nodesJoin},
		{name: "scale up", act: (*stage).scaleUp},
		{name: "rolling restart", act: (*stage).rollingRestart},
		{name: "node lost", act: (*stage).nodeLost},
		{name: "node drained", act: (*stage).nodeDrained},
		{name: "controller killed", act: (*stage).controllerKilled},
		{name: "calm before the storm", act: (*stage).calm},
		{name: "storm", act: (*stage).storm, check: (*stage).afterStorm},
		{name: "service gone", act: (*stage).serviceGone, moral: "its frontend, rule, probe, pool and public IP are gone"},
		{heading: "Second act: Services come and go.", name: "services appear", act: (*stage).servicesAppear},
		{name: "annotation changes", act: (*stage).annotationChanges},
		{name: "annotation wrong", act: (*stage).annotationWrong, check: (*stage).afterWrong},
		{name: "services go", act: (*stage).servicesGo},
		{name: "calm", act: (*stage).calm},
	}
}

func laterActs() []step {
	return []step{
		{heading: "Third act: spot machines are evicted.", name: "spot eviction", act: (*stage).spotEviction},
		{name: "the same without admin states", act: (*stage).evictionIgnored},
		{heading: "Fourth act: a Service is published to other networks.", name: "service published", act: (*stage).servicePublished},
	}
}

func (s *stage) deploy(ctx context.Context) error {
	s.tell("Deployments web, api and db, each with a Service of type LoadBalancer, class " + loadBalancerClass)
	for i, w := range workloads {
		if err := s.cluster.deploy(ctx, w, firstNodes-min(i, 1), nil); err != nil {
			return err
		}
	}
	return nil
}

// showAddresses prints the addresses of the Services.
func (s *stage) showAddresses(context.Context) error {
	all, err := s.truth.balanced()
	var parts []string
	for _, service := range all {
		ip, _ := addressOf(service)
		parts = append(parts, fmt.Sprintf("%s has %s", service.Name, ip))
	}
	s.print.detail(strings.Join(parts, ", "))
	return err
}

func (s *stage) nodesJoin(ctx context.Context) error {
	s.tell("%d nodes become %d, still without pods: nothing is to be written", firstNodes, s.nodes)
	for i := firstNodes + 1; i <= s.nodes; i++ {
		if err := s.cluster.addNode(ctx, i); err != nil {
			return err
		}
	}
	// The pools are in sync already: wait, so that a wrong write would show.
	return pause(ctx, time.Second)
}

func (s *stage) scaleUp(ctx context.Context) error {
	web, api, db := s.nodes*7/10, s.nodes/2, s.nodes*3/10
	s.tell("web scales to %d pods, api to %d, db to %d", web, api, db)
	return s.scale(ctx, web, api, db)
}

func (s *stage) scale(ctx context.Context, replicas ...int) error {
	for i, n := range replicas {
		if err := s.cluster.scale(ctx, workloads[i].name, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) rollingRestart(ctx context.Context) error {
	s.tell("kubectl rollout restart deployment web: every pod moves")
	return s.cluster.restart(ctx, "web")
}

func (s *stage) nodeLost(ctx context.Context) error {
	node := s.anyMember("web")
	s.tell("%s loses its power: its pods turn unready and are replaced", node)
	if err := s.cluster.losePower(ctx, node); err != nil {
		return err
	}
	if err := s.losesAll(ctx, node); err != nil {
		return err
	}
	s.tell("%s is deleted", node)
	return s.cluster.delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
}

// losesAll waits until no pool wants the node and its pods are replaced.
func (s *stage) losesAll(ctx context.Context, node string) error {
	gone := func() bool {
		return !slices.ContainsFunc(workloads, func(w workload) bool { return slices.Contains(s.observer.members(w.name), node) })
	}
	if err := s.within(ctx, "the watch does not tell that the pods of "+node+" are unready", gone); err != nil {
		return err
	}
	return s.settle(ctx)
}

func (s *stage) nodeDrained(ctx context.Context) error {
	node := s.anyMember("api")
	if err := s.cluster.cordon(ctx, node); err != nil {
		return err
	}
	evicted, err := s.cluster.evict(ctx, node)
	if err != nil {
		return err
	}
	s.tell("kubectl drain %s: %s move", node, words.FormatCount(evicted, "pod"))
	return nil
}

// controllerKilled kills the controller after it wrote the first due pool, changes the cluster, and
// restarts it.
func (s *stage) controllerKilled(ctx context.Context) error {
	web, api, db := s.nodes*4/10, s.nodes*8/10, s.nodes*5/10
	s.tell("web scales to %d pods, api to %d, db to %d", web, api, db)
	writes := s.observer.counted().Writes
	if err := s.scale(ctx, web, api, db); err != nil {
		return err
	}
	err := s.within(ctx, "no write came", func() bool { return s.observer.counted().Writes > writes })
	if err != nil {
		return err
	}
	s.lab.weir.Kill()
	s.print.line(red, "weir", "killed with -9 while Azure works on its first write")
	web = s.nodes * 6 / 10
	s.tell("while nobody looks, web scales to %d", web)
	if err := s.scale(ctx, web); err != nil {
		return err
	}
	if err := s.strangerPuts(ctx, contestedPool, foreignAddress, "somebody-elses"); err != nil {
		return err
	}
	if err := pause(ctx, 1500*time.Millisecond); err != nil {
		return err
	}
	s.progress.next(s.print, time.Now(), s.observer.levels())
	if err := s.lab.startWeir(ctx); err != nil {
		return err
	}
	s.print.line(plain, "weir", fmt.Sprintf("started again, process %d", s.lab.weir.ProcessID()))
	return nil
}

// strangerPuts adds a foreign address with the second writer; it must remain.
func (s *stage) strangerPuts(ctx context.Context, pool string, ip netip.Addr, name string) error {
	if err := newSecondWriter(s.lab.endpoint).add(ctx, pool, name, ip); err != nil {
		return err
	}
	s.observer.foreign(strings.TrimPrefix(pool, namespace+"-"), ip, name)
	s.print.line(yellow, "writer", fmt.Sprintf("puts %s into %s by a PUT of the pool", ip, pool))
	return nil
}

// within waits for a condition until the step's deadline.
func (s *stage) within(ctx context.Context, otherwise string, happened func() bool) error {
	return s.until(ctx, otherwise, func() (bool, error) { return happened(), nil })
}

// until is within for a condition that can fail.
func (s *stage) until(ctx context.Context, otherwise string, happened func() (bool, error)) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.deadline, &notLevel{s.deadline, nil})
	defer cancel()
	err := until(limited, lookEvery/5, happened)
	if _, late := errors.AsType[*notLevel](err); late {
		return &notLevel{s.deadline, append([]string{otherwise}, s.explain(ctx, "", s.observer.levels())...)}
	}
	return err
}

func (s *stage) serviceGone(ctx context.Context) error {
	s.tell("Service db is deleted")
	err := s.cluster.delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}})
	if err != nil {
		return err
	}
	gone := func() bool { return len(s.observer.members("db")) == 0 }
	return s.within(ctx, "the watch does not tell that Service db is gone", gone)
}

// calm changes nothing for longer than one interval.
func (s *stage) calm(ctx context.Context) error {
	length := updateInterval + time.Second
	s.tell("nothing happens for %.0f seconds, and nothing may be written", length.Seconds())
	writes := s.observer.counted().Writes
	if err := pause(ctx, length); err != nil {
		return err
	}
	if n := s.observer.counted().Writes - writes; n > 0 {
		s.addNote(words.FormatCount(n, "write") + " though nothing had changed; 0 are usual")
	}
	return nil
}

// anyMember returns a node of a workload's pool, chosen by the seed.
func (s *stage) anyMember(name string) string {
	members := s.observer.members(name)
	return members[s.random.IntN(len(members))]
}
