// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

// Bounds of copies, because node ports of a cluster are few (2,768 by default).
const (
	maxCopiesOfGateway   = 32
	maxCopiesOfNamespace = 64 // of its Gateways
)

// boundDelay is the delay until copies are counted again.
const boundDelay = time.Minute

// nodePorts are the node ports of all Gateways. A rule to a node port in use gets that of a copy of the Service.
// Only the worker uses it.
type nodePorts struct {
	claims routing.Claims
	// copies is the number of copies of each Gateway, by namespace and name.
	copies map[string]map[string]int
	// isComplete is set once all Gateways are read.
	isComplete bool
}

// choice is the node port of one rule.
type choice struct {
	rule routing.Rule
	port routing.NodePort
	// holder is what else forwards to the port; empty if the Gateway claims it.
	holder string
	// wanted is the copy to use instead, and existing the cached one; nil for none.
	wanted, existing *corev1.Service
}

// chooseNodePorts claims the node ports of a Gateway. A copy is used as long as it exists, so that the rules of a
// Gateway do not change with other Gateways. changed are the Gateways that gained or lost a node port.
func (r *Reconciler) chooseNodePorts(refs *references, gw *gatewayv1.Gateway, a *routing.Attachment) (choices []choice, changed []types.NamespacedName) {
	name, listeners := client.ObjectKeyFromObject(gw), map[routing.NodePort]gatewayv1.SectionName{}
	var claimed []routing.NodePort
	copies := 0
	for _, rule := range a.Rules() {
		s := refs.Service(rule.Service)
		if s == nil { // it was deleted since Attach
			continue
		}
		c := choice{rule: rule, port: routing.NodePort{Protocol: rule.Protocol, Port: rule.NodePort, Internal: isInternal(gw)}, wanted: routing.NewCopy(gw, rule, s)}
		if c.wanted != nil {
			c.existing = refs.Service(client.ObjectKeyFromObject(c.wanted))
		}
		first, isHeld := r.ports.claims.Holder(c.port)
		switch listener, ok := listeners[c.port]; {
		case usesNodePorts(s):
			c.holder = "the load balancer of Service " + rule.Service.String()
		case ok:
			c.holder = "listener " + string(listener)
		case isHeld && first != name && c.wanted != nil:
			c.holder = "Gateway " + first.String()
		}
		switch {
		case c.existing != nil:
			copies++
		case c.holder == "":
			listeners[c.port] = rule.Listener
			claimed = append(claimed, c.port)
		}
		choices = append(choices, c)
	}
	r.ports.setCopies(name, copies)
	return choices, r.ports.claims.Set(gw, claimed)
}

// assignNodePorts replaces the node ports of rules that are in use, and creates the copies. It returns these copies.
func (r *Reconciler) assignNodePorts(ctx context.Context, refs *references, gw *gatewayv1.Gateway, a *routing.Attachment) (used []string, delay time.Duration, err error) {
	if err := r.readGateways(refs); err != nil {
		return nil, 0, err
	}
	choices, changed := r.chooseNodePorts(refs, gw, a)
	for _, other := range changed {
		r.queue.Add(other)
	}
	if refs.err != nil {
		return nil, 0, refs.err
	}
	var failed []error
	a.ReplaceBackends(func(rule routing.Rule) (routing.Backend, string) {
		at := slices.IndexFunc(choices, func(c choice) bool { return c.rule == rule })
		if at < 0 {
			return rule.Backend, fmt.Sprintf("Service %s does not exist", rule.Service)
		}
		c := choices[at]
		if c.existing == nil && c.holder == "" {
			first, _ := r.ports.claims.Holder(c.port)
			if first == client.ObjectKeyFromObject(gw) {
				return rule.Backend, ""
			}
			c.holder = "Gateway " + first.String()
		}
		if c.wanted == nil {
			return rule.Backend, fmt.Sprintf("%s already forwards to node port %d of Service %s, Azure allows one, and Weir does not copy a Service without a selector: use another Service", c.holder, rule.NodePort, rule.Service)
		}
		if c.existing == nil && gw.DeletionTimestamp == nil && r.ports.isFull(client.ObjectKeyFromObject(gw)) {
			delay = boundDelay
			return rule.Backend, fmt.Sprintf("%s already forwards to node port %d of Service %s, and Azure allows one. Weir makes at most %d copies of Services for a Gateway, and %d for the Gateways of a namespace: use another Service with the same selector",
				c.holder, rule.NodePort, rule.Service, maxCopiesOfGateway, maxCopiesOfNamespace)
		}
		svc, problem, err := r.ensureCopy(ctx, gw, c)
		if err != nil {
			failed = append(failed, err)
		}
		if problem != "" {
			return rule.Backend, problem
		}
		used = append(used, metadata.Key(svc.Namespace, svc.Name))
		b := rule.Backend
		b.NodePort, b.HealthCheckNodePort = svc.Spec.Ports[0].NodePort, svc.Spec.HealthCheckNodePort
		return b, ""
	})
	r.ports.setCopies(client.ObjectKeyFromObject(gw), len(used))
	return used, delay, errors.Join(failed...)
}

// ensureCopy returns the copy with the wanted spec, or why it cannot be used. It creates none for a deleted Gateway.
func (r *Reconciler) ensureCopy(ctx context.Context, gw *gatewayv1.Gateway, c choice) (svc *corev1.Service, problem string, err error) {
	name := client.ObjectKeyFromObject(c.wanted)
	svc = c.existing
	if svc == nil && gw.DeletionTimestamp != nil {
		return nil, "the Gateway is deleted", nil
	}
	if svc == nil {
		svc = c.wanted.DeepCopy()
		err = r.cfg.Writer.Create(ctx, svc, client.FieldOwner(k8s.FieldOwner))
		if apierrors.IsAlreadyExists(err) { // the cache does not have it yet
			svc = &corev1.Service{}
			err = r.cfg.Reader.Get(ctx, name, svc)
		}
		if err != nil {
			return nil, fmt.Sprintf("Service %s, a copy of Service %s with another node port, cannot be created: %v", name, c.rule.Service, err), fmt.Errorf("copy of Service %s for Gateway %s: %w", c.rule.Service, client.ObjectKeyFromObject(gw), err)
		}
		r.ports.setCopies(client.ObjectKeyFromObject(gw), r.ports.copies[gw.Namespace][gw.Name]+1)
	}
	if _, isCopy := routing.CopySourceOf(svc); !isCopy || svc.Spec.Ports[0].NodePort == 0 {
		return nil, fmt.Sprintf("Service %s is not as Weir created it: delete it, and Weir creates it again as a copy of Service %s", name, c.rule.Service), nil
	}
	next := svc.DeepCopy()
	if routing.UpdateCopy(next, c.wanted) {
		err = r.cfg.Writer.Patch(ctx, next, client.MergeFromWithOptions(svc, client.MergeFromWithOptimisticLock{}), client.FieldOwner(k8s.FieldOwner))
		if err != nil {
			err = fmt.Errorf("copy %s of Service %s: %w", name, c.rule.Service, err)
		}
	}
	return svc, "", err
}

// deleteCopies deletes the copies of a Gateway that are not used.
func (r *Reconciler) deleteCopies(ctx context.Context, gateway types.NamespacedName, used []string) error {
	var list corev1.ServiceList
	if err := r.objects.cached.List(ctx, &list, client.MatchingFields{byGateway: gateway.String()}); err != nil {
		return fmt.Errorf("copies of Services for Gateway %s: %w", gateway, err)
	}
	for i := range list.Items {
		s := &list.Items[i]
		if slices.Contains(used, metadata.Key(s.Namespace, s.Name)) || s.DeletionTimestamp != nil {
			continue
		}
		err := r.cfg.Writer.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}) // only what the cache has seen
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("copy %s for Gateway %s: %w", client.ObjectKeyFromObject(s), gateway, err)
		}
	}
	return nil
}

// readGateways claims the node ports of all Gateways, the oldest first, before the first decision.
func (r *Reconciler) readGateways(refs *references) error {
	if r.ports.isComplete {
		return nil
	}
	var list gatewayv1.GatewayList
	if err := r.objects.cached.List(refs.ctx, &list); err != nil {
		return fmt.Errorf("list of Gateways: %w", err)
	}
	gateways := make([]*gatewayv1.Gateway, 0, len(list.Items))
	for i := range list.Items {
		gateways = append(gateways, &list.Items[i])
	}
	slices.SortFunc(gateways, func(a, b *gatewayv1.Gateway) int { return routing.ComparePrecedence(a, b) })
	for _, gw := range gateways {
		if served, _, err := r.objects.hasClass(refs.ctx, gw); err != nil || !served {
			refs.keep(err)
			continue
		}
		routes, err := r.objects.routes(refs.ctx, byGateway, client.ObjectKeyFromObject(gw).String())
		refs.keep(err)
		r.chooseNodePorts(refs, gw, routing.Attach(gw, routes, refs))
	}
	r.ports.isComplete = refs.err == nil
	return refs.err
}

func (p *nodePorts) setCopies(gateway types.NamespacedName, n int) {
	if p.copies == nil {
		p.copies = map[string]map[string]int{}
	}
	if p.copies[gateway.Namespace] == nil {
		p.copies[gateway.Namespace] = map[string]int{}
	}
	p.copies[gateway.Namespace][gateway.Name] = n
	if n == 0 {
		delete(p.copies[gateway.Namespace], gateway.Name)
	}
	if len(p.copies[gateway.Namespace]) == 0 {
		delete(p.copies, gateway.Namespace)
	}
}

// isFull reports whether a Gateway must not have another copy.
func (p *nodePorts) isFull(gateway types.NamespacedName) bool {
	total := 0
	for _, n := range p.copies[gateway.Namespace] {
		total += n
	}
	return p.copies[gateway.Namespace][gateway.Name] >= maxCopiesOfGateway || total >= maxCopiesOfNamespace
}
