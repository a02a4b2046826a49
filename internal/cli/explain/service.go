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
		for _, p := range c.Of {
			if p.Kind == "Service" || p.Kind == "Lease" && (out.Served || len(pools) > 0) {
				out.Steps = append(out.Steps, Step{Cause: c.Name, Why: p.Why, Do: status.RemedyOf(c.Name, p)})
			}
		}
	}
	return nil
}

// addNext adds what Weir does next, by the condition Programmed.
func (v *Service) addNext() {
	c := meta.FindStatusCondition(v.Conditions, servicelb.TypeProgrammed)
	if c == nil {
		return
	}
	if v.IsProgrammed = c.Status == metav1.ConditionTrue; v.IsProgrammed {
		return
	}
	retry := fmt.Sprintf("weir retry -n %s service/%s", v.Namespace, v.Name)
	switch c.Reason {
	case servicelb.ConditionReasonFailed, servicelb.ConditionReasonRejected:
		v.Next = "Weir retries by itself, after a pause that grows to some minutes; now: " + retry
	case servicelb.ConditionReasonDeferred:
		v.Next = "Weir retries by itself at the time of the message"
		if servicelb.IsRejection(c.Message) {
			v.Next += "; now: " + retry
		}
	case servicelb.ConditionReasonRetryAfter:
		v.Next = "Weir retries by itself at the time of the message"
	case servicelb.ConditionReasonNotAccepted:
		v.Next = "nothing until the Service changes"
	case servicelb.ConditionReasonConflict:
		v.Next = "Weir writes it again at the time of the condition " + metadata.ConditionConflict + "; now: weir retry -n " + v.Namespace + " service/" + v.Name
	}
}

// addRules adds the rules of a valid Service. Their names and ports do not depend on azure.json.
func (v *Service) addRules(s *corev1.Service) {
	spec, problems := service.BuildSpec(cache.ServiceOf(s), service.Settings{VirtualNetwork: "any", Subnet: "any"})
	if len(problems) > 0 { // a condition reports them
		return
	}
	for i := range v.Ports {
		p := &v.Ports[i]
		for _, r := range spec.Rules {
			if r.Transport == lb.All || r.FrontendPort == p.Port && strings.EqualFold(string(r.Transport), p.Protocol) {
				p.Rules = append(p.Rules, r.Name)
			}
		}
	}
}

func (v *Service) isLoadBalancer() bool { return v.Type == string(corev1.ServiceTypeLoadBalancer) }

// classLine describes which class the Service has, and what Weir serves.
func (v *Service) classLine() string {
	class := v.Class
	if class == "" {
		class = "none"
	}
	switch {
	case v.Class == v.ServedClass && v.ServedKnown:
		return class + ", which this Weir serves"
	case v.Served && v.Class != v.ServedClass:
		return class + ", and Weir still has resources of it. " + v.servedText
	}
	return class + ". " + v.servedText
}

// RemedyFor returns what to do about the problem that a condition shows; empty if it shows none.
func (v *Service) RemedyFor(c metav1.Condition) string {
	for _, s := range v.Steps {
		if s.Why == c.Message {
			return s.Do
		}
	}
	return ""
}

// OtherSteps returns the steps for problems that no condition shows.
func (v *Service) OtherSteps() []Step {
	return slices.DeleteFunc(distinctSteps(v.Steps), func(s Step) bool {
		return slices.ContainsFunc(v.Conditions, func(c metav1.Condition) bool { return c.Message == s.Why })
	})
}

// distinctSteps returns the steps without equal ones.
func distinctSteps(steps []Step) []Step {
	var all []Step
	for _, s := range steps {
		if !slices.ContainsFunc(all, func(o Step) bool { return o.Do == s.Do && o.Why == s.Why }) {
			all = append(all, s)
		}
	}
	return all
}
