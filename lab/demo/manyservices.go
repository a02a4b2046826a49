// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/humanize"
)

// Act two creates, changes and deletes many Services at once. All select the pods of web.
const (
	bulkSize      = 50
	bulkRemaining = 3 // not deleted
	bulkName      = "stall-"
	// expectedWrites is the maximum number of load balancer writes per step on an idle machine, for
	// any number of Services.
	expectedWrites = 5

	idleAnnotation = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"
	idleMinutes    = 10
	invalidIdle    = "soon"
)

func bulkServiceName(i int) string { return fmt.Sprintf("%s%02d", bulkName, i) }

// BulkSummary is the result of act two.
type BulkSummary struct {
	Appeared SyncCost `json:"appeared"`
	Changed  SyncCost `json:"changed"`
	Refused  SyncCost `json:"refused"`
	Deleted  SyncCost `json:"deleted"`
	// Events counts the events for the wrong annotation.
	Events int `json:"wrongAnnotationEvents"`
	// Services, Frontends and PublicIPs remain at the end, including those of act one.
	Services  int `json:"servicesLeft"`
	Frontends int `json:"frontendsLeft"`
	PublicIPs int `json:"publicIPsLeft"`
}

// SyncCost is the cost of bringing a number of Services in sync.
type SyncCost struct {
	Services int     `json:"services"`
	Seconds  float64 `json:"seconds"`
	traffic
}

// String describes the writes.
func (c SyncCost) String() string {
	s := fmt.Sprintf("writes: %d load balancer", c.Balancers)
	if c.PublicIPs > 0 {
		s += ", " + humanize.FormatCount(c.PublicIPs, "public IP")
	}
	return s
}

func (s *stage) createServices(ctx context.Context) (err error) {
	s.printAction("%d Services for the pods of web appear together", bulkSize)
	s.bulkServices = &BulkSummary{}
	s.bulkServices.Appeared, err = s.applyToServices(ctx, bulkSize, "served", func() error {
		for i := range bulkSize {
			if err := s.cluster.createObject(ctx, newService(bulkServiceName(i+1), "web")); err != nil {
				return err
			}
		}
		return nil
	}, func() ([]string, error) { return s.pendingServices(s.dataPathReason) })
	return err
}

// changeAnnotation changes one annotation on all Services.
func (s *stage) changeAnnotation(ctx context.Context) (err error) {
	s.printAction("kubectl annotate: %s wants an idle timeout of %d minutes", bulkName+"*", idleMinutes)
	s.bulkServices.Changed, err = s.applyToServices(ctx, bulkSize, "changed", func() error {
		for i := range bulkSize {
			if err := s.annotateServices(ctx, bulkServiceName(i+1), fmt.Sprint(idleMinutes)); err != nil {
				return err
			}
		}
		return nil
	}, func() ([]string, error) { return s.pendingServices(unchangedReason) })
	return err
}

func (s *stage) annotateServices(ctx context.Context, name, value string) error {
	return s.cluster.patchObject(ctx, &corev1.Service{}, namespace, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, idleAnnotation, value))
}

// unchangedReason returns why a Service's address lacks the timeout, or "".
func unchangedReason(service *corev1.Service, azure *azureSnapshot) string {
	ip, _ := serviceAddress(service)
	rules := azure.rulesFor(ip)
	if len(rules) == 0 {
		return "has no rule"
	}
	for _, r := range rules {
		if r.idleTimeout != idleMinutes {
			return fmt.Sprintf("has an idle timeout of %d minutes", r.idleTimeout)
		}
	}
	return ""
}

// setInvalidAnnotation sets an invalid annotation value on one Service and prints what kubectl shows.
func (s *stage) setInvalidAnnotation(ctx context.Context) (err error) {
	name := bulkServiceName(1)
	s.printAction("kubectl annotate: %s wants an idle timeout of %q", name, invalidIdle)
	var events []corev1.Event
	s.bulkServices.Refused, err = s.applyToServices(ctx, 1, "", func() error { return s.annotateServices(ctx, name, invalidIdle) }, func() ([]string, error) {
		if events, err = s.cluster.serviceEvents(ctx, reasonSyncFailed); len(events) == 0 {
			return []string{"Service " + name + " is not told that its annotation is wrong"}, err
		}
		return nil, err
	})
	if err != nil {
		return err
	}
	s.print.printVerbatim(boldText, "", "$ kubectl -n "+namespace+" get events  # the newest Warning")
	s.print.printVerbatim(plainText, eventLines(&events[len(events)-1], time.Now(), width)...)
	s.print.printVerbatim(plainText, "")
	return nil
}

// checkInvalidAnnotation checks that only this Service got an event, once, and that nothing was written.
func (s *stage) checkInvalidAnnotation(ctx context.Context) error {
	events, err := s.cluster.serviceEvents(ctx, reasonSyncFailed)
	if err != nil {
		return err
	}
	notified := countByService(events)
	s.bulkServices.Events = notified[bulkServiceName(1)]
	switch {
	case len(notified) != 1 || s.bulkServices.Events != 1:
		return fmt.Errorf("one annotation is wrong, and the Services were told so: %v", notified)
	case s.bulkServices.Refused.Writes > 0:
		s.addNote(humanize.FormatCount(s.bulkServices.Refused.Writes, "write") + " for an annotation that is wrong; 0 are usual")
	}
	return nil
}

// deleteServices deletes most Services, including the one with the wrong annotation.
func (s *stage) deleteServices(ctx context.Context) (err error) {
	gone := bulkSize - bulkRemaining
	s.printAction("%d of them are deleted", gone)
	s.bulkServices.Deleted, err = s.applyToServices(ctx, gone, "gone", func() error {
		for i := range gone {
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bulkServiceName(i + 1)}}
			if err := s.cluster.deleteObject(ctx, o); err != nil {
				return err
			}
		}
		return nil
	}, s.leftoverResources)
	if err != nil {
		return err
	}
	services, err := s.desired.loadBalancerServices()
	azure := s.observer.latestSnapshot()
	s.bulkServices.Services, s.bulkServices.Frontends, s.bulkServices.PublicIPs = len(services), len(azure.frontends), len(azure.publicIPs)
	s.print.printDetail("left in Azure: " + s.bulkServices.remainingText())
	return err
}

func (b *BulkSummary) remainingText() string {
	return fmt.Sprintf("%s and %s for %s", humanize.FormatCount(b.Frontends, "frontend"), humanize.FormatCount(b.PublicIPs, "public IP"), humanize.FormatCount(b.Services, "Service"))
}

// leftoverResources returns the deleted Services that still exist, and Azure resources without a Service.
func (s *stage) leftoverResources() ([]string, error) {
	services, err := s.desired.loadBalancerServices()
	var remaining []string
	stay := 0
	for _, service := range services {
		if service.DeletionTimestamp == nil {
			stay++
			continue
		}
		remaining = append(remaining, "Service "+service.Name+" is still going")
	}
	if reason := countMismatch(s.observer.latestSnapshot(), stay); len(remaining) == 0 && reason != "" {
		remaining = append(remaining, reason)
	}
	return remaining, err
}

// pendingServices returns the Services for which why returns a reason, or that the watch has not seen.
func (s *stage) pendingServices(reasonOf func(*corev1.Service, *azureSnapshot) string) ([]string, error) {
	services, err := s.desired.loadBalancerServices()
	var behind []string
	azure, known := s.observer.latestSnapshot(), 0
	for _, service := range services {
		if !strings.HasPrefix(service.Name, bulkName) {
			continue
		}
		known++
		if reason := reasonOf(service, azure); reason != "" {
			behind = append(behind, "Service "+service.Name+" "+reason)
		}
	}
	for range bulkSize - known {
		behind = append(behind, "the watch does not show all Services")
	}
	return behind, err
}

// countInterval is the minimum time between progress lines.
const countInterval = 5 * time.Second

// applyToServices applies an action to n Services, waits until all are in sync, and prints the progress.
func (s *stage) applyToServices(ctx context.Context, n int, verb string, do func() error, behind func() ([]string, error)) (SyncCost, error) {
	began, before := time.Now(), s.observer.currentTraffic()
	if err := do(); err != nil {
		return SyncCost{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.deadline, &syncTimeoutError{s.deadline, nil})
	defer cancel()
	var late []string
	shown, at := -1, began
	err := pollUntil(limited, 2*pollInterval, func() (bool, error) {
		var err error
		late, err = behind()
		if done := max(n-len(late), 0); verb != "" && len(late) > 0 && done != shown && time.Since(at) >= countInterval {
			s.print.printLine(yellowText, "azure", fmt.Sprintf("%d/%d %s", done, n, verb))
			shown, at = done, time.Now()
		}
		return len(late) == 0, err
	})
	f := SyncCost{Services: n, Seconds: time.Since(began).Seconds(), traffic: s.observer.currentTraffic().subtract(before)}
	switch {
	case ctx.Err() != nil:
		return f, context.Cause(ctx)
	case err != nil && len(late) > 0:
		return f, &syncTimeoutError{s.deadline, append(late[:1:1], s.explainOutOfSync(ctx, "", s.observer.poolStates())...)}
	case err != nil:
		return f, err
	case f.Balancers > expectedWrites:
		s.addNote(fmt.Sprintf("%s of the load balancer; up to %d are usual", humanize.FormatCount(f.Balancers, "write"), expectedWrites))
	}
	if verb != "" {
		s.print.printLine(greenText, "azure", fmt.Sprintf("%d/%d %s, %.1f s; %s", n, n, verb, f.Seconds, f))
	}
	return f, nil
}

func (b *BulkSummary) formatLines() []string {
	line := func(label string, f SyncCost, took string) string {
		return fmt.Sprintf("%-29s%7.1f s  %s", label, f.Seconds, took)
	}
	return []string{
		line(fmt.Sprintf("%d Services appear together", b.Appeared.Services), b.Appeared, b.Appeared.String()),
		line(fmt.Sprintf("an annotation changes on %d", b.Changed.Services), b.Changed, b.Changed.String()),
		line("an annotation is wrong", b.Refused, fmt.Sprintf("writes: %d; %s", b.Refused.Writes, humanize.FormatCount(b.Events, "event"))),
		line(fmt.Sprintf("%d Services are deleted", b.Deleted.Services), b.Deleted, b.Deleted.String()),
		"Left in Azure: " + b.remainingText() + ".",
	}
}
