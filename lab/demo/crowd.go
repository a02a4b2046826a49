// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/words"
)

// Act two creates, changes and deletes many Services at once. All select the pods of web.
const (
	crowdSize  = 50
	crowdStays = 3 // not deleted
	crowdName  = "stall-"
	// usualWrites is the maximum number of load balancer writes per step on an idle machine, for
	// any number of Services.
	usualWrites = 5

	idleAnnotation = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"
	idleMinutes    = 10
	idleNonsense   = "soon"
)

func crowdMember(i int) string { return fmt.Sprintf("%s%02d", crowdName, i) }

// CrowdSummary is the result of act two.
type CrowdSummary struct {
	Appeared Feat `json:"appeared"`
	Changed  Feat `json:"changed"`
	Refused  Feat `json:"refused"`
	Deleted  Feat `json:"deleted"`
	// Events counts the events for the wrong annotation.
	Events int `json:"wrongAnnotationEvents"`
	// Services, Frontends and PublicIPs remain at the end, including those of act one.
	Services  int `json:"servicesLeft"`
	Frontends int `json:"frontendsLeft"`
	PublicIPs int `json:"publicIPsLeft"`
}

// Feat is the cost of bringing a number of Services in sync.
type Feat struct {
	Services int     `json:"services"`
	Seconds  float64 `json:"seconds"`
	traffic
}

// String describes the writes.
func (f Feat) String() string {
	s := fmt.Sprintf("writes: %d load balancer", f.Balancers)
	if f.PublicIPs > 0 {
		s += ", " + words.FormatCount(f.PublicIPs, "public IP")
	}
	return s
}

// servicesAppear creates the Services.
func (s *stage) servicesAppear(ctx context.Context) (err error) {
	s.tell("%d Services for the pods of web appear together", crowdSize)
	s.crowd = &CrowdSummary{}
	s.crowd.Appeared, err = s.together(ctx, crowdSize, "served", func() error {
		for i := range crowdSize {
			if err := s.cluster.create(ctx, newService(crowdMember(i+1), "web")); err != nil {
				return err
			}
		}
		return nil
	}, func() ([]string, error) { return s.lagging(s.whyUnserved) })
	return err
}

// annotationChanges changes one annotation on all Services.
func (s *stage) annotationChanges(ctx context.Context) (err error) {
	s.tell("kubectl annotate: %s wants an idle timeout of %d minutes", crowdName+"*", idleMinutes)
	s.crowd.Changed, err = s.together(ctx, crowdSize, "changed", func() error {
		for i := range crowdSize {
			if err := s.annotate(ctx, crowdMember(i+1), fmt.Sprint(idleMinutes)); err != nil {
				return err
			}
		}
		return nil
	}, func() ([]string, error) { return s.lagging(whyUnchanged) })
	return err
}

func (s *stage) annotate(ctx context.Context, name, value string) error {
	return s.cluster.patch(ctx, &corev1.Service{}, namespace, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, idleAnnotation, value))
}

// whyUnchanged returns why a Service's address lacks the timeout, or "".
func whyUnchanged(service *corev1.Service, azure *shownAzure) string {
	ip, _ := addressOf(service)
	rules := azure.behind(ip)
	if len(rules) == 0 {
		return "has no rule"
	}
	for _, r := range rules {
		if r.idleMinutes != idleMinutes {
			return fmt.Sprintf("has an idle timeout of %d minutes", r.idleMinutes)
		}
	}
	return ""
}

// annotationWrong sets an invalid annotation value on one Service and prints what kubectl shows.
func (s *stage) annotationWrong(ctx context.Context) (err error) {
	name := crowdMember(1)
	s.tell("kubectl annotate: %s wants an idle timeout of %q", name, idleNonsense)
	var events []corev1.Event
	s.crowd.Refused, err = s.together(ctx, 1, "", func() error { return s.annotate(ctx, name, idleNonsense) }, func() ([]string, error) {
		if events, err = s.cluster.told(ctx, reasonSyncFailed); len(events) == 0 {
			return []string{"Service " + name + " is not told that its annotation is wrong"}, err
		}
		return nil, err
	})
	if err != nil {
		return err
	}
	s.print.verbatim(bold, "", "$ kubectl -n "+namespace+" get events  # the newest Warning")
	s.print.verbatim(plain, eventLines(&events[len(events)-1], time.Now(), width)...)
	s.print.verbatim(plain, "")
	return nil
}

// afterWrong checks that only this Service got an event, once, and that nothing was written.
func (s *stage) afterWrong(ctx context.Context) error {
	events, err := s.cluster.told(ctx, reasonSyncFailed)
	if err != nil {
		return err
	}
	told := countByService(events)
	s.crowd.Events = told[crowdMember(1)]
	switch {
	case len(told) != 1 || s.crowd.Events != 1:
		return fmt.Errorf("one annotation is wrong, and the Services were told so: %v", told)
	case s.crowd.Refused.Writes > 0:
		s.addNote(words.FormatCount(s.crowd.Refused.Writes, "write") + " for an annotation that is wrong; 0 are usual")
	}
	return nil
}

// servicesGo deletes most Services, including the one with the wrong annotation.
func (s *stage) servicesGo(ctx context.Context) (err error) {
	gone := crowdSize - crowdStays
	s.tell("%d of them are deleted", gone)
	s.crowd.Deleted, err = s.together(ctx, gone, "gone", func() error {
		for i := range gone {
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: crowdMember(i + 1)}}
			if err := s.cluster.delete(ctx, o); err != nil {
				return err
			}
		}
		return nil
	}, s.leftovers)
	if err != nil {
		return err
	}
	all, err := s.truth.balanced()
	azure := s.observer.azureNow()
	s.crowd.Services, s.crowd.Frontends, s.crowd.PublicIPs = len(all), len(azure.frontends), len(azure.publicIPs)
	s.print.detail("left in Azure: " + s.crowd.left())
	return err
}

func (c *CrowdSummary) left() string {
	return fmt.Sprintf("%s and %s for %s", words.FormatCount(c.Frontends, "frontend"), words.FormatCount(c.PublicIPs, "public IP"), words.FormatCount(c.Services, "Service"))
}

// leftovers returns the deleted Services that still exist, and Azure resources without a Service.
func (s *stage) leftovers() ([]string, error) {
	all, err := s.truth.balanced()
	var left []string
	stay := 0
	for _, service := range all {
		if service.DeletionTimestamp == nil {
			stay++
			continue
		}
		left = append(left, "Service "+service.Name+" is still going")
	}
	if why := unequal(s.observer.azureNow(), stay); len(left) == 0 && why != "" {
		left = append(left, why)
	}
	return left, err
}

// lagging returns the Services for which why returns a reason, or that the watch has not seen.
func (s *stage) lagging(why func(*corev1.Service, *shownAzure) string) ([]string, error) {
	all, err := s.truth.balanced()
	var behind []string
	azure, known := s.observer.azureNow(), 0
	for _, service := range all {
		if !strings.HasPrefix(service.Name, crowdName) {
			continue
		}
		known++
		if why := why(service, azure); why != "" {
			behind = append(behind, "Service "+service.Name+" "+why)
		}
	}
	for range crowdSize - known {
		behind = append(behind, "the watch does not show all Services")
	}
	return behind, err
}

// countEvery is the minimum time between progress lines.
const countEvery = 5 * time.Second

// together applies an action to n Services, waits until all are in sync, and prints the progress.
func (s *stage) together(ctx context.Context, n int, verb string, do func() error, behind func() ([]string, error)) (Feat, error) {
	began, before := time.Now(), s.observer.counted()
	if err := do(); err != nil {
		return Feat{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.deadline, &notLevel{s.deadline, nil})
	defer cancel()
	var late []string
	shown, at := -1, began
	err := until(limited, 2*lookEvery, func() (bool, error) {
		var err error
		late, err = behind()
		if done := max(n-len(late), 0); verb != "" && len(late) > 0 && done != shown && time.Since(at) >= countEvery {
			s.print.line(yellow, "azure", fmt.Sprintf("%d/%d %s", done, n, verb))
			shown, at = done, time.Now()
		}
		return len(late) == 0, err
	})
	f := Feat{Services: n, Seconds: time.Since(began).Seconds(), traffic: s.observer.counted().minus(before)}
	switch {
	case ctx.Err() != nil:
		return f, context.Cause(ctx)
	case err != nil && len(late) > 0:
		return f, &notLevel{s.deadline, append(late[:1:1], s.explain(ctx, "", s.observer.levels())...)}
	case err != nil:
		return f, err
	case f.Balancers > usualWrites:
		s.addNote(fmt.Sprintf("%s of the load balancer; up to %d are usual", words.FormatCount(f.Balancers, "write"), usualWrites))
	}
	if verb != "" {
		s.print.line(green, "azure", fmt.Sprintf("%d/%d %s, %.1f s; %s", n, n, verb, f.Seconds, f))
	}
	return f, nil
}

// lines returns the lines of the summary.
func (c *CrowdSummary) lines() []string {
	line := func(what string, f Feat, took string) string {
		return fmt.Sprintf("%-29s%7.1f s  %s", what, f.Seconds, took)
	}
	return []string{
		line(fmt.Sprintf("%d Services appear together", c.Appeared.Services), c.Appeared, c.Appeared.String()),
		line(fmt.Sprintf("an annotation changes on %d", c.Changed.Services), c.Changed, c.Changed.String()),
		line("an annotation is wrong", c.Refused, fmt.Sprintf("writes: %d; %s", c.Refused.Writes, words.FormatCount(c.Events, "event"))),
		line(fmt.Sprintf("%d Services are deleted", c.Deleted.Services), c.Deleted, c.Deleted.String()),
		"Left in Azure: " + c.left() + ".",
	}
}
