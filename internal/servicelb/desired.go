// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"slices"
	"strings"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
)

// Desired is what a Service wants of its load balancer.
type Desired struct {
	Spec     *service.Spec
	OwnPools []string
	// NamespaceLabels are the labels of the namespace, if used. Only a changed selector result moves the
	// Service.
	NamespaceLabels map[string]string
	Selection       string
	// Groups are the additional resource groups of its public IPs. The others may hold unrecorded ones made by
	// another service controller.
	Groups, Inherited []string
	// LinkGroups are the resource groups of its Private Link Service, including those where another service
	// controller may have made one.
	LinkGroups []string
	// Problems reject the Service. Flaws are invalid parts that are left out. Unknown are annotations without
	// effect. The last is why restrictions have no effect.
	Problems   []service.Problem
	Flaws      []service.Flaw
	Unknown    []string
	Unenforced string
	Restricts  bool
	// Proxied is a Service on the load balancer with PROXY protocol, which makes this one's probes fail; empty
	// for none.
	Proxied      string
	NodesChanged bool
}

// desired returns what a Service wants. With an error, the returned part can be reported to the user.
func (r *Reconciler) desired(ctx context.Context, s Service) (Desired, error) {
	o := r.cfg.Settings
	object := s.Object
	object.PoolNames = r.cfg.Cluster.PoolNames(s)
	d := Desired{OwnPools: object.OwnPools(), Problems: s.Problems}
	if !s.Finalizer && s.Inherited(o.Class) {
		w, _ := service.Desired(s.Object, o.Service)
		d.Inherited, d.LinkGroups = o.groupsOf(&w), o.linkGroups(&w)
	}
	if !s.Ours(o.Class) {
		return d, nil
	}
	d.Unknown, d.Unenforced = s.Object.Unknown(), s.Object.Unenforced(o.Guarded)
	if o.ByNamespace() {
		namespace, _, _ := strings.Cut(s.Name, "/")
		labels, err := r.cfg.Cluster.NamespaceLabels(ctx, namespace)
		if err != nil {
			return d, err
		}
		d.NamespaceLabels = labels
	}
	d.Selection = o.selection(s.Object.Labels, d.NamespaceLabels)
	object.SharesAddress = object.HasSCTP() && r.cfg.Cluster.SharesAddress(s)
	w, problems := service.Desired(object, o.Service)
	d.Spec, d.Groups, d.LinkGroups = &w, o.groupsOf(&w), o.linkGroups(&w)
	if w.ProbesHTTP() && !service.Proxied(object.Annotations) {
		d.Proxied = r.cfg.Cluster.ProxiedBeside(s)
	}
	d.Problems, d.Flaws = slices.Concat(d.Problems, problems), w.Flaws
	if len(d.Problems) > 0 {
		var is service.Restriction
		if is, d.Restricts = r.enforcedRestriction(s); d.Restricts && len(problems) > 0 {
			d.Flaws = is.Flaws
		}
	}
	if d.Unenforced != "" && o.RequireEffectiveRestrictions {
		d.Problems = append(d.Problems, service.Problem{Field: "requireEffectiveRestrictions of azure.json", Value: "true", Want: "no " + d.Unenforced})
	}
	return d, nil
}

func (d Desired) wrong() string {
	texts := make([]string, len(d.Problems))
	for i, p := range d.Problems {
		texts[i] = p.Error()
	}
	text := strings.Join(texts, "; ") + ". Nothing is changed in Azure until that is mended"
	if d.Restricts {
		text += ", except that clients that the Service does not admit are denied"
	}
	return text
}

func flawsOf(flaws []service.Flaw) string {
	texts := make([]string, len(flaws))
	for i, f := range flaws {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "; ")
}

// ByNamespace reports whether namespace labels select load balancers. Otherwise namespaces are not read, and no
// permission is needed.
func (o Settings) ByNamespace() bool {
	return slices.ContainsFunc(o.Several, func(c service.Configuration) bool { return c.Namespaces != nil })
}

func (o Settings) selection(labels, namespace map[string]string) string {
	var said []byte
	for _, conf := range o.Several {
		for _, by := range []struct {
			selects service.Selector
			labels  map[string]string
		}{{conf.Services, labels}, {conf.Namespaces, namespace}} {
			switch {
			case by.selects == nil:
				said = append(said, '-')
			case by.selects(by.labels):
				said = append(said, 'y')
			default:
				said = append(said, 'n')
			}
		}
	}
	return string(said)
}

// groupsOf returns the resource groups of the wanted public IPs, except the default one.
func (o Settings) groupsOf(w *service.Spec) []string {
	var groups []string
	if w == nil {
		return nil
	}
	for _, f := range w.Frontends {
		if f.PublicIP != nil && !strings.EqualFold(f.PublicIP.ID.ResourceGroup, o.Service.PublicIPs.ResourceGroup) {
			groups = union(groups, []string{f.PublicIP.ID.ResourceGroup})
		}
	}
	return groups
}

// request returns the request for a Service and the load balancers that may then hold parts of it; none if the
// Service leaves and Azure holds nothing.
func (r *Reconciler) request(ctx context.Context, by Locator, s Service, recorded Record, d Desired) (balancer.Request, []string, error) {
	for _, group := range d.Groups {
		if !slices.Contains(recorded.Groups, group) { // once recorded, it would be read until the Service is deleted
			if err := by.Reads(ctx, group); err != nil {
				return balancer.Request{}, nil, groupError{err}
			}
		}
	}
	for _, group := range d.LinkGroups {
		if d.Spec != nil && !strings.EqualFold(group, r.cfg.Settings.Service.PrivateLinks.ResourceGroup) && !slices.Contains(recorded.LinkGroups, group) {
			if err := by.ReadsLinks(ctx, group); err != nil {
				return balancer.Request{}, nil, groupError{err}
			}
		}
	}
	on, removeFrom, err := by.Locate(ctx, balancer.Placing{
		Service: s.Name, Owner: service.Owner(s.UID), Labels: s.Object.Labels, NamespaceLabels: d.NamespaceLabels,
		Desired: d.Spec, Recorded: recorded.Places,
	})
	if err != nil || on == "" && len(removeFrom) == 0 {
		return balancer.Request{}, nil, err
	}
	req := balancer.Request{
		Service: s.Name, Owner: service.Owner(s.UID), Created: s.Created, OwnPools: d.OwnPools, Desired: d.Spec,
		Shown: s.Shown, Groups: union(union(recorded.Groups, d.Groups), d.Inherited), Again: s.WriteAgain,
		LinkGroups: union(recorded.LinkGroups, d.LinkGroups), DeleteUnused: s.AllowRemoval,
	}
	places := removeFrom
	if on != "" {
		places = append([]string{on}, removeFrom...)
		req.On = by.ID(on)
	}
	for _, name := range removeFrom {
		req.Leave = append(req.Leave, by.ID(name))
	}
	req.HeldPools, req.MadePools = r.cfg.Cluster.HeldPools(s, d.OwnPools, append(slices.Clone(req.Leave), req.On))
	return req, places, nil
}

// groupError is a failed read of a resource group that the Service names, as opposed to one read for all
// Services.
type groupError struct{ error }

// Unwrap returns the read error.
func (e groupError) Unwrap() error { return e.error }

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, name := range b {
		if !slices.ContainsFunc(all, func(n string) bool { return strings.EqualFold(n, name) }) {
			all = append(all, name)
		}
	}
	return all
}

const mostFormer = 8

// withFormer adds recorded load balancers that are no longer the cluster's, until the Service is in sync. Users
// can edit the record, so the number is limited.
func withFormer(places, recorded []string) []string {
	all := union(places, recorded)
	return all[:min(len(all), max(len(places), mostFormer))]
}
