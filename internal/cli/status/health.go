// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/service"
)

// maxHealthPools limits the reads of health for one report: Azure counts each as a write.
const maxHealthPools = 20

// AllDown is the cause for a rule without a member that is up according to its probe.
const AllDown = "AllDown"

// HealthReader reads what Azure's probes report of the members of a BackendPool.
type HealthReader func(ctx context.Context, namespace, pool string) ([]app.RuleHealth, error)

// Health is what Azure's probes report.
type Health struct {
	// Read counts the pools that were read; Error is why others were not.
	Read  int    `json:"read"`
	Error string `json:"error,omitempty"`

	rules map[client.ObjectKey][]app.RuleHealth
}

func (h Health) text() string {
	text := "those of " + humanize.FormatCount(h.Read, "BackendPool") + " were read"
	if h.Error != "" {
		text += "; " + h.Error
	}
	return text
}

// ReadHealth adds the health of pools with members, until the first failure that concerns more than one pool.
func (s *Snapshot) ReadHealth(ctx context.Context, read HealthReader) {
	s.Health = &Health{rules: map[client.ObjectKey][]app.RuleHealth{}}
	requested := 0
	for i := range s.Pools {
		p := &s.Pools[i]
		if len(p.Status.WrittenAddresses) == 0 {
			continue
		}
		if requested++; requested > maxHealthPools {
			s.Health.Error = fmt.Sprintf("at most %d pools are read at once: -n NAMESPACE selects others", maxHealthPools)
			return
		}
		rules, err := read(ctx, p.Namespace, p.Name)
		if _, ok := errors.AsType[*app.PoolHealthError](err); ok {
			continue // such as a pool without probes
		}
		if err != nil {
			s.Health.Error = strings.Join(strings.Fields(err.Error()), " ")
			return
		}
		s.Health.Read++
		s.Health.rules[client.ObjectKeyFromObject(p)] = rules
	}
}

// downProblems returns the rules of a pool without a member that is up.
func (s Snapshot) downProblems(p *v1alpha1.BackendPool) (found []Problem) {
	if s.Health == nil {
		return nil
	}
	for _, rule := range s.Health.rules[client.ObjectKeyFromObject(p)] {
		isDown := len(rule.Members) > 0
		for _, m := range rule.Members {
			isDown = isDown && !m.Up
		}
		if !isDown {
			continue
		}
		w := Problem{Kind: "BackendPool", Namespace: p.Namespace, Name: p.Name, State: AllDown, cause: AllDown, Service: s.serviceOfRule(p, rule.Rule)}
		w.Why = fmt.Sprintf("rule %s: Azure's probe reports no member up: %s", rule.Rule, rule.Members[0].Text())
		found = append(found, w)
	}
	return found
}

// serviceOfRule returns the Service of a rule, with its namespace where it is not the pool's; empty if unknown.
func (s Snapshot) serviceOfRule(p *v1alpha1.BackendPool, rule string) string {
	if p.Spec.ServiceRef != nil {
		return p.Spec.ServiceRef.Name
	}
	for i := range s.Services {
		if of := &s.Services[i]; strings.HasPrefix(strings.ToLower(rule), service.OwnerNameOf(string(of.UID))+"-") {
			return cmp.Or(strings.TrimPrefix(of.Namespace+"/"+of.Name, p.Namespace+"/"), of.Name)
		}
	}
	return ""
}

// Text names the object and its Service.
func (p Problem) Text() string { return strings.TrimSpace(p.objectName() + " " + p.serviceText()) }
