// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/explain"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
)

// serviceRow is a Service of type LoadBalancer, or a Gateway.
type serviceRow struct {
	Kind                 string
	Namespace, Name      string
	Addresses, Balancers string
	Class, State         string
	// Since is zero if only the bound NotBefore is known.
	Since, NotBefore time.Time
}

// newServiceRows returns the Services of type LoadBalancer and the Gateways, those with a problem first.
func newServiceRows(seen status.Snapshot, r status.Report) []serviceRow {
	wrong := map[string]status.Problem{}
	for _, c := range r.Causes {
		for _, o := range c.Objects {
			if key := o.Kind + " " + o.Namespace + "/" + o.Name; wrong[key].Kind == "" {
				wrong[key] = o
			}
		}
	}
	waits := map[string]status.Problem{}
	for _, o := range r.Waiting {
		waits[o.Kind+" "+o.Namespace+"/"+o.Name] = o
	}
	balancers := map[string][]string{}
	for i := range seen.Pools {
		if p := &seen.Pools[i]; p.Spec.ServiceRef != nil {
			key := p.Namespace + "/" + p.Spec.ServiceRef.Name
			balancers[key] = append(balancers[key], p.Spec.LoadBalancer.Name)
		}
	}
	var rows []serviceRow
	for i := range seen.Services {
		if s := &seen.Services[i]; s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			key := s.Namespace + "/" + s.Name
			of := append(servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation]), balancers[key]...) // it may share the pool of all nodes
			slices.Sort(of)
			row := newServiceRow(s, slices.Compact(of), wrong["Service "+key].Kind != "")
			if s.DeletionTimestamp != nil { // its conditions may be older
				row = row.withRemoval(wrong["Service "+key], waits["Service "+key])
			}
			rows = append(rows, row)
		}
	}
	for i := range seen.Gateways.All {
		gw := &seen.Gateways.All[i]
		rows = append(rows, newGatewayRow(gw, wrong["Gateway "+gw.Namespace+"/"+gw.Name]))
	}
	slices.SortFunc(rows, func(a, b serviceRow) int {
		return cmp.Or(stateOrder(a.Class)-stateOrder(b.Class), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return rows
}

func newServiceRow(s *corev1.Service, balancers []string, isWrong bool) serviceRow {
	row := serviceRow{Kind: "Service", Namespace: s.Namespace, Name: s.Name, Balancers: strings.Join(balancers, ", "), Class: stateUnknown, State: "no condition of Weir"}
	var addresses []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		addresses = append(addresses, cmp.Or(in.IP, in.Hostname))
	}
	row.Addresses = strings.Join(addresses, ", ")
	// A Service that is not accepted has no other state.
	for _, kind := range []string{servicelb.TypeProgrammed, servicelb.TypeAccepted} {
		c := meta.FindStatusCondition(s.Status.Conditions, kind)
		switch {
		case c == nil, kind == servicelb.TypeAccepted && c.Status == metav1.ConditionTrue:
			continue
		case c.Status == metav1.ConditionTrue:
			row.Class = stateInSync
		default:
			row.Class = stateUpdating
		}
		row.State, row.NotBefore = c.Reason, c.LastTransitionTime.Time // it may have had another reason before
	}
	if isWrong {
		row.Class = stateFailed
	}
	return row
}

// withRemoval returns the row of a deleted Service, with the problem of its removal, or what this waits for.
func (r serviceRow) withRemoval(problem, waits status.Problem) serviceRow {
	switch {
	case problem.Kind != "":
		r.State, r.Since, r.NotBefore = problem.State, problem.Since, problem.NotBefore
	case waits.Kind != "":
		r.Class, r.State, r.Since, r.NotBefore = stateUpdating, waits.State, waits.Since, waits.NotBefore
	}
	return r
}

// newGatewayRow returns the row of a Gateway; problem is its first one, or empty.
func newGatewayRow(gw *gatewayv1.Gateway, problem status.Problem) serviceRow {
	row := serviceRow{
		Kind: "Gateway", Namespace: gw.Namespace, Name: gw.Name, Class: stateUpdating, State: v1alpha1.ReasonPending,
		Balancers: strings.Join(explain.LoadBalancersOf(gw), ", "),
	}
	var addresses []string
	for _, a := range gw.Status.Addresses {
		addresses = append(addresses, a.Value)
	}
	row.Addresses = strings.Join(addresses, ", ")
	if c := meta.FindStatusCondition(gw.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)); c != nil && c.Status != metav1.ConditionUnknown {
		row.State, row.NotBefore = c.Reason, c.LastTransitionTime.Time
		if c.Status == metav1.ConditionTrue {
			row.Class = stateInSync
		}
	}
	if problem.Kind != "" {
		row.Class, row.State, row.Since, row.NotBefore = stateFailed, problem.State, problem.Since, problem.NotBefore
	}
	return row
}

func (r serviceRow) matches(find string) bool {
	return strings.Contains(strings.ToLower(r.Kind+" "+r.Namespace+"/"+r.Name+" "+r.Addresses+" "+r.Balancers), strings.ToLower(find))
}

func (s *pageServer) serveServices(w http.ResponseWriter, r *http.Request) {
	f, err := s.getFrontPage(r.Context())
	if err != nil {
		s.serveError(w, err)
		return
	}
	find := strings.TrimSpace(r.URL.Query().Get("find"))
	rows := slices.DeleteFunc(slices.Clone(f.services), func(row serviceRow) bool { return !row.matches(find) })
	list := newListPage(rows, r.URL.Query(), "services?"+url.Values{"find": {find}}.Encode())
	s.renderPage(w, http.StatusOK, "services", pageData{
		Title: "Services", Here: "services", At: f.At, Find: find, Summary: countServices(rows),
		Body: struct {
			Find, Counts string
			Rows         listPage[serviceRow]
		}{find, countServices(rows), list},
	})
}

func countServices(rows []serviceRow) string {
	gateways := 0
	for _, row := range rows {
		if row.Kind == "Gateway" {
			gateways++
		}
	}
	text := humanize.FormatCount(len(rows)-gateways, "Service") + " of type LoadBalancer"
	if gateways > 0 {
		text += ", " + humanize.FormatCount(gateways, "Gateway")
	}
	return text
}
