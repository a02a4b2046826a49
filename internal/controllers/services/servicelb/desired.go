// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// Desired is what a Service wants of its load balancer.
type Desired struct {
	Spec           *service.Spec
	DedicatedPools []string
	// NamespaceLabels are the labels of the namespace, if used. Only a changed selector result moves the
	// Service.
	NamespaceLabels map[string]string
	SelectorResult  string
	// Groups are the additional resource groups of its public IPs. The others may hold unrecorded ones made by
	// another service controller.
	Groups, InheritedGroups []string
	// LinkGroups are the resource groups of its Private Link Service, including those where another service
	// controller may have made one.
	LinkGroups []string
	// Problems reject the Service. Flaws are invalid parts that are left out. Unknown are annotations without
	// effect. The last is why restrictions have no effect.
	Problems         []service.Problem
	Flaws            []service.Flaw
	Unknown          []string
	UnenforcedReason string
	HasRestriction   bool
	// HasNoGroup is true for a public Service that needs a security group to admit clients, if Weir manages none.
	HasNoGroup bool
	// ProxyProtocolService is a Service on the load balancer with PROXY protocol, which makes this one's probes fail; empty
	// for none.
	ProxyProtocolService string
	NodesChanged         bool
}

// buildDesired returns what a Service wants. With an error, the returned part can be reported to the user.
func (r *Reconciler) buildDesired(ctx context.Context, s Service) (Desired, error) {
	o := r.cfg.Settings
	object := s.Object
	object.PoolNames = r.cfg.Cluster.PoolNames(s)
	d := Desired{DedicatedPools: object.DedicatedPools(), Problems: s.Problems}
	if !s.Finalizer && s.IsInherited(o.Class) {
		w, _ := service.BuildSpec(s.Object, o.Service)
		d.InheritedGroups, d.LinkGroups = o.groupsOf(&w), o.linkGroups(&w)
	}
	if !s.IsManaged(o.Class) {
		return d, nil
	}
	d.Unknown, d.UnenforcedReason = s.Object.UnknownAnnotations(), s.Object.UnenforcedReason(o.HasSecurityGroup)
	if o.ByNamespace() {
		namespace, _, _ := strings.Cut(s.Name, "/")
		labels, err := r.cfg.Cluster.NamespaceLabels(ctx, namespace)
		if err != nil {
			return d, err
		}
		d.NamespaceLabels = labels
	}
	d.SelectorResult = o.selectorResult(s.Object.Labels, d.NamespaceLabels)
	object.SharesAddress = object.HasSCTP() && r.cfg.Cluster.SharesAddress(s)
	w, problems := service.BuildSpec(object, o.Service)
	denied, err := r.checkGatewayLoadBalancers(object.Namespace, w)
	if err != nil {
		return d, err
	}
	problems = append(problems, denied...)
	d.HasNoGroup = !o.HasSecurityGroup && w.NeedsSecurityGroup()
	d.Spec, d.Groups, d.LinkGroups = &w, o.groupsOf(&w), o.linkGroups(&w)
	if w.ProbesHTTP() && !service.UsesProxyProtocol(object.Annotations) {
		d.ProxyProtocolService = r.cfg.Cluster.ProxyProtocolNeighbor(s)
	}
	d.Problems, d.Flaws = slices.Concat(d.Problems, problems), w.Flaws
	if len(d.Problems) > 0 {
		var restriction service.Restriction
		if restriction, d.HasRestriction = r.enforcedRestriction(s); d.HasRestriction && len(problems) > 0 {
			d.Flaws = restriction.Flaws
		}
	}
	if d.UnenforcedReason != "" && o.RequireEffectiveRestrictions {
		d.Problems = append(d.Problems, service.Problem{Field: "requireEffectiveRestrictions of azure.json", Value: "true", Expected: "no " + d.UnenforcedReason})
	}
	return d, nil
}

// checkGatewayLoadBalancers returns the gateway load balancers that the namespace may not use.
func (r *Reconciler) checkGatewayLoadBalancers(namespace string, w service.Spec) ([]service.Problem, error) {
	var problems []service.Problem
	for _, f := range w.Frontends {
		text := f.Frontend.GatewayLoadBalancerID()
		if text == "" {
			continue
		}
		id, err := lb.ParseFrontendID(text)
		if err != nil {
			return nil, err
		}
		on := id.LoadBalancer
		allowed, known := r.cfg.Cluster.AllowsGatewayLoadBalancer(namespace, on)
		if !known {
			return nil, fmt.Errorf("whether its namespace may use gateway load balancer %s is not known: Namespace %s has not been seen yet", on.Name, namespace)
		}
		if !allowed {
			problems = append(problems, service.Problem{Field: service.GatewayLoadBalancer, Value: text, Expected: fmt.Sprintf(
				"a gateway load balancer that its namespace may use: an administrator can add %s/%s/%s to annotation %s of Namespace %s",
				on.SubscriptionID, on.ResourceGroup, on.Name, service.GatewayLoadBalancersAnnotation, namespace)})
		}
	}
	return problems, nil
}

func (d Desired) problemText() string {
	texts := make([]string, len(d.Problems))
	for i, p := range d.Problems {
		texts[i] = p.Error()
	}
	text := strings.Join(texts, "; ") + ". Nothing is changed in Azure until that is fixed"
	if d.HasRestriction {
		text += ", except that clients that the Service does not admit are denied"
	}
	return text
}

func flawText(flaws []service.Flaw) string {
	texts := make([]string, len(flaws))
	for i, f := range flaws {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "; ")
}

// ByNamespace reports whether namespace labels select load balancers. Otherwise namespaces are not read, and no
// permission is needed.
func (settings Settings) ByNamespace() bool {
	return slices.ContainsFunc(settings.Configurations, func(c service.Configuration) bool { return c.Namespaces != nil })
}

func (settings Settings) selectorResult(labels, namespace map[string]string) string {
	var result []byte
	for _, conf := range settings.Configurations {
		for _, by := range []struct {
			selects service.Selector
			labels  map[string]string
		}{{conf.Services, labels}, {conf.Namespaces, namespace}} {
			switch {
			case by.selects == nil:
				result = append(result, '-')
			case by.selects(by.labels):
				result = append(result, 'y')
			default:
				result = append(result, 'n')
			}
		}
	}
	return string(result)
}

func (d Desired) properties() []string {
	if d.Spec == nil {
		return nil
	}
	return d.Spec.RequestedProperties
}

// groupsOf returns the resource groups of the wanted public IPs, except the default one.
func (settings Settings) groupsOf(w *service.Spec) []string {
	var groups []string
	if w == nil {
		return nil
	}
	for _, f := range w.Frontends {
		if f.PublicIP != nil && !strings.EqualFold(f.PublicIP.ID.ResourceGroup, settings.Service.PublicIPs.ResourceGroup) {
			groups = mergeNames(groups, []string{f.PublicIP.ID.ResourceGroup})
		}
	}
	return groups
}

// newRequest returns the request for a Service and the load balancers that may then hold parts of it; none if the
// Service leaves and Azure holds nothing.
func (r *Reconciler) newRequest(ctx context.Context, by Locator, s Service, recorded Record, d Desired) (loadbalancer.Request, []string, error) {
	for _, group := range d.Groups {
		if !slices.Contains(recorded.Groups, group) { // once recorded, it would be read until the Service is deleted
			if err := by.CheckReadable(ctx, group); err != nil {
				return loadbalancer.Request{}, nil, groupError{err}
			}
		}
	}
	for _, group := range d.LinkGroups {
		if d.Spec != nil && !strings.EqualFold(group, r.cfg.Settings.Service.PrivateLinks.ResourceGroup) && !slices.Contains(recorded.LinkGroups, group) {
			if err := by.CheckLinksReadable(ctx, group); err != nil {
				return loadbalancer.Request{}, nil, groupError{err}
			}
		}
	}
	on, removeFrom, err := by.FindPlacement(ctx, loadbalancer.PlacementRequest{
		Service: s.Name, Owner: service.OwnerNameOf(s.UID), Labels: s.Object.Labels, NamespaceLabels: d.NamespaceLabels,
		Desired: d.Spec, LoadBalancers: recorded.LoadBalancers,
	})
	if err != nil || on == "" && len(removeFrom) == 0 {
		return loadbalancer.Request{}, nil, err
	}
	req := loadbalancer.Request{
		Service: s.Name, Owner: service.OwnerNameOf(s.UID), Created: s.Created, DedicatedPools: d.DedicatedPools, Desired: d.Spec,
		StatusAddresses: s.StatusAddresses, Groups: mergeNames(mergeNames(recorded.Groups, d.Groups), d.InheritedGroups), RetryToken: s.RetryToken,
		LinkGroups: mergeNames(recorded.LinkGroups, d.LinkGroups), DeleteUnused: s.AllowRemoval,
		Retain: s.Object.RetainsAddress(r.cfg.Settings.Service),
	}
	places := removeFrom
	if on != "" {
		places = append([]string{on}, removeFrom...)
		req.On = by.ID(on)
	}
	for _, name := range removeFrom {
		req.RemoveFrom = append(req.RemoveFrom, by.ID(name))
	}
	req.RecordedPools, req.ManagedPools = r.cfg.Cluster.RecordedPools(s, d.DedicatedPools, append(slices.Clone(req.RemoveFrom), req.On))
	return req, places, nil
}

// groupError is a failed read of a resource group that the Service names, as opposed to one read for all
// Services.
type groupError struct{ error }

// Unwrap returns the read error.
func (e groupError) Unwrap() error { return e.error }

func mergeNames(a, b []string) []string {
	names := slices.Clone(a)
	for _, name := range b {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, name)
		}
	}
	return names
}

const maxFormer = 8

// addFormer adds recorded load balancers that are no longer the cluster's, until the Service is in sync. Users
// can edit the record, so the number is limited.
func addFormer(places, recorded []string) []string {
	names := mergeNames(places, recorded)
	return names[:min(len(names), max(len(places), maxFormer))]
}
