// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// addServing adds which class the Service has, which one Weir serves, its rules, and what to do.
func (r Reader) addServing(ctx context.Context, s *corev1.Service, pools []v1alpha1.BackendPool, out *Service) error {
	seen, err := status.ReadRunning(ctx, r.API, r.Now)
	if err != nil {
		return err
	}
	seen.Pools, seen.Services = pools, []corev1.Service{*s}
	out.Class = ptr.Deref(s.Spec.LoadBalancerClass, "")
	out.ServedClass, out.ServedKnown = status.ServedClass(seen.Leader, seen.Installation)
	out.servedText = status.ServedText(seen.Leader, seen.Installation)
	serving := cache.Serving{LoadBalancers: true, Class: out.ServedClass}
	if out.Served = serving.IsResponsible(s); out.Served {
		out.addRules(s)
		out.addNext()
	}
	report := status.NewReport(seen)
	for _, p := range report.Waiting {
		if p.Kind == "Service" && s.DeletionTimestamp != nil {
			out.Next = p.Why
		}
	}
	for _, c := range report.Causes {
		for _, p := range c.Objects {
			if p.Kind == "Service" || p.Kind == "Lease" && (out.Served || len(pools) > 0) {
				out.Steps = append(out.Steps, Step{Cause: c.Name, Why: p.Why, Fix: status.RemedyOf(c.Name, p)})
			}
		}
	}
	return nil
}

// addNext adds what Weir does next, by the condition Programmed.
func (svc *Service) addNext() {
	c := meta.FindStatusCondition(svc.Conditions, servicelb.TypeProgrammed)
	if c == nil {
		return
	}
	if svc.IsProgrammed = c.Status == metav1.ConditionTrue; svc.IsProgrammed {
		return
	}
	retry := fmt.Sprintf("weir retry -n %s service/%s", svc.Namespace, svc.Name)
	switch c.Reason {
	case servicelb.ConditionReasonFailed, servicelb.ConditionReasonRejected:
		svc.Next = "Weir retries by itself, after a pause that grows to some minutes; now: " + retry
	case servicelb.ConditionReasonDeferred:
		svc.Next = "Weir retries by itself at the time of the message"
		if servicelb.IsRejection(c.Message) {
			svc.Next += "; now: " + retry
		}
	case servicelb.ConditionReasonRetryAfter:
		svc.Next = "Weir retries by itself at the time of the message"
	case servicelb.ConditionReasonNotAccepted:
		svc.Next = "nothing until the Service changes"
	case servicelb.ConditionReasonConflict:
		svc.Next = "Weir writes it again at the time of the condition " + metadata.ConditionConflict + "; now: weir retry -n " + svc.Namespace + " service/" + svc.Name
	}
}

// addRules adds the rules of a valid Service. Their names and ports do not depend on azure.json.
func (svc *Service) addRules(s *corev1.Service) {
	spec, problems := service.BuildSpec(cache.ServiceOf(s), service.Settings{VirtualNetwork: "any", Subnet: "any"})
	if len(problems) > 0 { // a condition reports them
		return
	}
	for i := range svc.Ports {
		p := &svc.Ports[i]
		for _, r := range spec.Rules {
			if r.Transport == lb.All || r.FrontendPort == p.Port && strings.EqualFold(string(r.Transport), p.Protocol) {
				p.Rules = append(p.Rules, r.Name)
			}
		}
	}
}

func (svc *Service) isLoadBalancer() bool { return svc.Type == string(corev1.ServiceTypeLoadBalancer) }

// classLine describes which class the Service has, and what Weir serves.
func (svc *Service) classLine() string {
	class := svc.Class
	if class == "" {
		class = "none"
	}
	switch {
	case svc.Class == svc.ServedClass && svc.ServedKnown:
		return class + ", which this Weir serves"
	case svc.Served && svc.Class != svc.ServedClass:
		return class + ", and Weir still has resources of it. " + svc.servedText
	}
	return class + ". " + svc.servedText
}

// RemedyFor returns what to do about the problem that a condition shows; empty if it shows none.
func (svc *Service) RemedyFor(c metav1.Condition) string {
	for _, s := range svc.Steps {
		if s.Why == c.Message {
			return s.Fix
		}
	}
	return ""
}

// OtherSteps returns the steps for problems that no condition shows.
func (svc *Service) OtherSteps() []Step {
	return slices.DeleteFunc(distinctSteps(svc.Steps), func(s Step) bool {
		return slices.ContainsFunc(svc.Conditions, func(c metav1.Condition) bool { return c.Message == s.Why })
	})
}

// distinctSteps returns the steps without equal ones.
func distinctSteps(steps []Step) []Step {
	var items []Step
	for _, s := range steps {
		if !slices.ContainsFunc(items, func(o Step) bool { return o.Fix == s.Fix && o.Why == s.Why }) {
			items = append(items, s)
		}
	}
	return items
}
