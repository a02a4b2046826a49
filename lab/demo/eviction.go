// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/lab/armemu"
)

const (
	// noticeTime is the time between eviction notice and power loss. Azure gives at least 30 s.
	noticeTime = 5 * time.Second
	// flowWatchTime is how long new flows are counted after the last one to the machine.
	flowWatchTime = 2 * time.Second
	// reasonPreempt is the reason of the agent's eviction event.
	reasonPreempt = "PreemptScheduled"
)

// EvictionsSummary is the result of act three.
type EvictionsSummary struct {
	// With and Without are two evictions; in the second, Weir does not set admin states.
	With    Eviction `json:"withAdminState"`
	Without Eviction `json:"withoutAdminState"`
}

// Eviction is the effect of an eviction on new flows.
type Eviction struct {
	Node string `json:"node"`
	// Rules are the rules that sent new flows to the machine.
	Rules int `json:"rules"`
	// Seconds is the time from the notice to the last new flow.
	Seconds float64 `json:"secondsUntilNoNewFlow"`
	// Misdirected is the share of new flows to a dead machine, integrated over time and summed over
	// rules, in seconds: 2.5 for one of four machines dead for 10 s.
	Misdirected float64 `json:"misdirectedSeconds"`
}

// evictSpotMachine evicts a spot machine after a notice.
func (s *stage) evictSpotMachine(ctx context.Context) (err error) {
	s.evictions = &EvictionsSummary{}
	s.evictions.With, err = s.evictMachine(ctx)
	if err == nil && s.evictions.With.Misdirected > 0 {
		s.addNote(fmt.Sprintf("new flows went to a dead machine for %.1f s, though it was announced; 0 s are usual", s.evictions.With.Misdirected))
	}
	return err
}

// evictUnhandled evicts a machine while Weir does not set admin states.
func (s *stage) evictUnhandled(ctx context.Context) (err error) {
	if err := s.restartController(ctx, true); err != nil {
		return err
	}
	s.print.printLine(plainText, "weir", `started again, with "enableNodeAdminState": false`)
	s.evictions.Without, err = s.evictMachine(ctx)
	if err != nil {
		return err
	}
	return s.restartController(ctx, false)
}

func (s *stage) restartController(ctx context.Context, ignoresNodes bool) error {
	s.lab.controller.latest().Stop()
	s.lab.noAdminStates = ignoresNodes
	return s.lab.startController(ctx)
}

// evictMachine announces and ends a machine. Kubernetes notices only after new flows were counted,
// as it takes 40 s to miss a kubelet; then the node is replaced.
func (s *stage) evictMachine(ctx context.Context) (Eviction, error) {
	name, err := s.chooseMachine()
	if err != nil {
		return Eviction{}, err
	}
	node, err := s.cluster.getNode(ctx, name)
	if err != nil {
		return Eviction{}, err
	}
	ip, e := internalIP(node), Eviction{Node: node.Name}
	if err := s.observer.azure.resetFlows(ctx); err != nil {
		return e, err
	}
	rules, err := s.observer.azure.ruleFlows(ctx)
	if err != nil {
		return e, err
	}
	if e.Rules = len(rulesSendingTo(rules, ip)); e.Rules == 0 {
		return e, fmt.Errorf("no new flow goes to %s (%s), so none can be kept from it", node.Name, ip)
	}
	began := time.Now()
	if err := s.cluster.announceEviction(ctx, node); err != nil {
		return e, err
	}
	s.print.printLine(yellowText, "azure", fmt.Sprintf("%s is a spot machine, and goes in %.0f s: event %s", node.Name, noticeTime.Seconds(), reasonPreempt))
	if err := s.countFlows(ctx, &e, ip, began); err != nil {
		return e, err
	}
	if err := s.printNodeEvents(ctx, node); err != nil {
		return e, err
	}
	s.printAction("%s is missed, its pods are replaced; another machine joins", node.Name)
	return e, s.replaceNode(ctx, node.Name)
}

// chooseMachine returns a machine of web that is no workload's only one: Weir keeps the last member
// of a pool up despite a notice.
func (s *stage) chooseMachine() (string, error) {
	nodes := slices.DeleteFunc(s.observer.memberNames("web"), func(node string) bool {
		return slices.ContainsFunc(allWorkloads, func(w workload) bool { return slices.Equal(s.observer.memberNames(w.name), []string{node}) })
	})
	if len(nodes) == 0 {
		return "", errors.New("each machine of web is the only one of a workload")
	}
	return nodes[s.random.IntN(len(nodes))], nil
}

// countFlows powers the machine off at its time and counts new flows until it gets none.
func (s *stage) countFlows(ctx context.Context, e *Eviction, ip string, began time.Time) error {
	var stopped, died time.Time
	return s.waitForResult(ctx, "new flows still go to "+e.Node, func() (bool, error) {
		rules, err := s.observer.azure.ruleFlows(ctx)
		if err != nil {
			return false, err
		}
		now := time.Now()
		if stopped.IsZero() && len(rulesSendingTo(rules, ip)) == 0 {
			stopped = now
			e.Seconds = now.Sub(began).Seconds()
			s.print.printLine(greenText, "azure", fmt.Sprintf("no new flow goes to %s any more, %.2f s after the event", e.Node, e.Seconds))
			s.print.printDetail(blockedReason(rules, ip))
		}
		if died.IsZero() && now.Sub(began) >= noticeTime {
			died = now
			s.print.printLine(redText, "azure", "the machine of "+e.Node+" is gone")
			return false, s.observer.azure.stopMachine(ctx, ip)
		}
		if died.IsZero() || stopped.IsZero() || now.Sub(died) < flowWatchTime {
			return false, nil
		}
		for _, r := range rules {
			e.Misdirected += r.MisdirectedSeconds
		}
		return true, nil
	})
}

func internalIP(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// rulesSendingTo returns the rules that send new flows to an address.
func rulesSendingTo(rules []armemu.RuleFlows, ip string) []string {
	var found []string
	for _, r := range rules {
		for _, a := range r.Addresses {
			if a.IP == ip && a.TakesNewFlows {
				found = append(found, r.Rule)
			}
		}
	}
	return found
}

// blockedReason returns what keeps new flows away from an address.
func blockedReason(rules []armemu.RuleFlows, ip string) string {
	down, probed := 0, 0
	for _, r := range rules {
		for _, a := range r.Addresses {
			switch {
			case a.IP != ip:
			case a.AdminState == "Down":
				down++
			case !a.ProbedUp:
				probed++
			}
		}
	}
	if down > 0 {
		return fmt.Sprintf("it is Down for %s", humanize.FormatCount(down, "rule"))
	}
	return fmt.Sprintf("the probes of %s have noticed", humanize.FormatCount(probed, "rule"))
}

// printNodeEvents prints the node's events as kubectl shows them.
func (s *stage) printNodeEvents(ctx context.Context, node *corev1.Node) error {
	events, err := s.cluster.nodeEvents(ctx, node)
	if err != nil || len(events) == 0 {
		return err
	}
	s.print.printVerbatim(boldText, "", "$ kubectl get events --field-selector involvedObject.name="+node.Name+"  # Weir's")
	for i := range events {
		s.print.printVerbatim(plainText, eventLines(&events[i], time.Now(), width)...)
	}
	s.print.printVerbatim(plainText, "")
	return nil
}

// replaceNode deletes a node without a machine and adds another.
func (s *stage) replaceNode(ctx context.Context, name string) error {
	if err := s.cluster.stopMachine(ctx, name); err != nil {
		return err
	}
	if err := s.waitNodeRemoved(ctx, name); err != nil {
		return err
	}
	if err := s.cluster.deleteObject(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	s.addedNodes++
	return s.cluster.addNode(ctx, s.nodes+s.addedNodes)
}

func (e *EvictionsSummary) formatLines() []string {
	line := func(label string, e Eviction) string {
		return fmt.Sprintf("%-28s%8.2f s  new flows met a dead machine for %.1f s", label, e.Seconds, e.Misdirected)
	}
	return []string{
		line("a spot machine is evicted", e.With), line("the same, admin states off", e.Without),
		fmt.Sprintf("From the event until no rule sends new flows there (%d and %d did).", e.With.Rules, e.Without.Rules),
		fmt.Sprintf("The machine is gone %.0f s after the event.", noticeTime.Seconds()),
	}
}
