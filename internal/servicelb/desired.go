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
	// Spec is nil if it wants none of Weir's any more.
	Spec *service.Spec
	// OwnPools are the names of the pools that it may have for itself.
	OwnPools []string
	// NamespaceLabels are those of its namespace, if they matter, and Selection what the selectors
	// of the load balancers say of it: while that is the same, no label moves it.
	NamespaceLabels map[string]string
	Selection       string
	// Groups are the further resource groups of its public IPs, and Inherited those of what
	// another service controller may have made for it, which nobody has recorded.
	Groups, Inherited []string
	// LinkGroups are the resource groups of the Private Link Service that it asks for, or that another
	// service controller may have made for it.
	LinkGroups []string
	// Problems keep it from being served, Flaws are what is wrong with parts without which it is served, Unknown are annotations without effect, and Unenforced
	// says which restrictions have none.
	Problems   []service.Problem
	Flaws      []service.Flaw
	Unknown    []string
	Unenforced string
	// Restricts is true if the restrictions of an invalid Service are in force.
	Restricts bool
	// Proxied says which Service on the load balancer has the probes of this one fail; empty for none.
	Proxied string
	// NodesChanged is true if its security rules name other nodes than are there now.
	NodesChanged bool
}

// desired returns what a Service wants, as far as it is known: with an error what people are told
// of it all the same.
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

// wrong are the problems in words.
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

// flawsOf are flaws in words.
func flawsOf(flaws []service.Flaw) string {
	texts := make([]string, len(flaws))
	for i, f := range flaws {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "; ")
}

// ByNamespace reports whether the labels of namespaces say where Services belong. Otherwise
// no namespace is read, and Weir needs no right to.
func (o Settings) ByNamespace() bool {
	return slices.ContainsFunc(o.Several, func(c service.Configuration) bool { return c.Namespaces != nil })
}

// selection is what the selectors of the load balancers say of a Service, a letter each.
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

// groupsOf are the resource groups of the public IPs that a Service wants, but for that where
// they are unless somebody asks for another.
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

// request returns what has to be asked of these Balancers for a Service, and the load balancers that
// may hold parts of it then: none if Azure holds nothing of one that leaves.
func (r *Reconciler) request(ctx context.Context, by Locator, s Service, recorded Record, d Desired) (balancer.Request, []string, error) {
	for _, group := range d.Groups {
		if !slices.Contains(recorded.Groups, group) { // on record it would have to be read to the end
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
	on, leave, err := by.Locate(ctx, balancer.Placing{
		Service: s.Name, Owner: service.Owner(s.UID), Labels: s.Object.Labels, NamespaceLabels: d.NamespaceLabels,
		Desired: d.Spec, Recorded: recorded.Places,
	})
	if err != nil || on == "" && len(leave) == 0 {
		return balancer.Request{}, nil, err
	}
	req := balancer.Request{
		Service: s.Name, Owner: service.Owner(s.UID), Created: s.Created, OwnPools: d.OwnPools, Desired: d.Spec,
		Shown: s.Shown, Groups: union(union(recorded.Groups, d.Groups), d.Inherited), Again: s.WriteAgain,
		LinkGroups: union(recorded.LinkGroups, d.LinkGroups), DeleteUnused: s.AllowRemoval,
	}
	places := leave
	if on != "" {
		places = append([]string{on}, leave...)
		req.On = by.ID(on)
	}
	for _, name := range leave {
		req.Leave = append(req.Leave, by.ID(name))
	}
	req.HeldPools, req.MadePools = r.cfg.Cluster.HeldPools(s, d.OwnPools, append(slices.Clone(req.Leave), req.On))
	return req, places, nil
}

// groupError is an error of reading a resource group that the Service names. Errors of reads for all Services are not
// among these: no Service is to blame for them.
type groupError struct{ error }

// Unwrap returns the error of the read.
func (e groupError) Unwrap() error { return e.error }

// union returns the names of both, each once, in their order.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, name := range b {
		if !slices.ContainsFunc(all, func(n string) bool { return strings.EqualFold(n, name) }) {
			all = append(all, name)
		}
	}
	return all
}

// mostFormer bounds the names of a record.
const mostFormer = 8

// withFormer adds to the load balancers that may hold parts of a Service those that are on record
// and not the cluster's any more: they stay there until all is where it belongs. Whoever may edit
// a Service may edit its record, so they are few.
func withFormer(places, recorded []string) []string {
	all := union(places, recorded)
	return all[:min(len(all), max(len(places), mostFormer))]
}
