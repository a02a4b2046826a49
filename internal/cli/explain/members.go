// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	poolmembers "weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// Service is a Service with its path to Azure.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	Policy    string `json:"externalTrafficPolicy,omitempty"`
	// Class is spec.loadBalancerClass, ServedClass the one that this Weir serves; empty means none. ServedKnown is false if
	// ServedClass is only the default. Served is false if Weir is not responsible for the Service.
	Class         string `json:"loadBalancerClass"`
	ServedClass   string `json:"servedClass"`
	ServedKnown   bool   `json:"servedClassKnown"`
	Served        bool   `json:"served"`
	servedText    string
	Addresses     []string           `json:"addresses"`
	LoadBalancers []string           `json:"loadBalancers"`
	Ports         []Port             `json:"ports"`
	Conditions    []metav1.Condition `json:"conditions"`
	// Steps are what to do next, for each problem. Next is what Weir does next while it is not in sync.
	Steps []Step `json:"steps,omitempty"`
	Next  string `json:"next,omitempty"`
	// IsProgrammed is true once Azure has all of it.
	IsProgrammed bool `json:"programmed"`
}

// Step is a problem of a Service, and the fix.
type Step struct {
	Cause string `json:"cause"`
	Why   string `json:"why"`
	Fix   string `json:"do,omitempty"`
}

// Port is a Service port: one rule for each IP family on each of its load balancers.
type Port struct {
	Name     string `json:"name,omitempty"`
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
	NodePort int32  `json:"nodePort,omitempty"`
	// Rules are the names that Weir gives to its rules.
	Rules []string `json:"rules,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Node is a candidate for pools.
type Node struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
	Excluded  string   `json:"excluded,omitempty"`
	// Duplicates name the node that counts for each address that several nodes have.
	Duplicates []string `json:"duplicates,omitempty"`
	Taints     []string `json:"taints,omitempty"`
	// Poolless is why no pool has it; empty if one has.
	Poolless string `json:"poolless,omitempty"`
}

// Pool is a BackendPool and its members.
type Pool struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	// Since is the start of the state. If only a lower bound is known, NotBefore has it.
	Since        time.Time `json:"since,omitzero"`
	NotBefore    time.Time `json:"notBefore,omitzero"`
	Why          string    `json:"why,omitempty"`
	Pool         string    `json:"pool"`
	LoadBalancer string    `json:"loadBalancer"`
	Desired      *int32    `json:"desired,omitempty"`
	Observed     *int32    `json:"observed,omitempty"`
	Foreign      *int32    `json:"foreign,omitempty"`
	Next         string    `json:"next,omitempty"`
	// Cause is Azure's error code, else the state; the remedy depends on it.
	Cause string `json:"cause"`
	// InProgress is true if it waits, and needs no action.
	InProgress bool     `json:"inProgress,omitempty"`
	Members    []Member `json:"members"`
	// Pause is set if the pool is paused.
	Pause *v1alpha1.Pause `json:"pause,omitempty"`
	// HasHealth is true if Azure's health of the members was read.
	HasHealth bool `json:"healthRead,omitempty"`
	// Unnamed counts the members that are out of sync but not named in the status.
	Unnamed int `json:"unnamed,omitempty"`
	service string
}

// Member is an actual or desired member of a pool.
type Member struct {
	Node    string `json:"node,omitempty"`
	Address string `json:"address,omitempty"`
	// Is is InPool, Down, Missing, Leaving, LeftOut or Foreign.
	State string `json:"is"`
	Why   string `json:"why,omitempty"`
	// Health is what Azure's probe reports, and why.
	Health string `json:"health,omitempty"`
}

// Values of Member.Is.
const (
	InPool  = "InPool"
	Down    = "Down"
	Missing = "Missing" // desired, but not recorded, or absent at the last read
	Leaving = "Leaving" // recorded, but not desired
	LeftOut = "LeftOut" // hosts an endpoint, but cannot be a member
	Foreign = "Foreign" // added by another controller or user
)

func newService(s *corev1.Service) Service {
	out := Service{
		Namespace: s.Namespace, Name: s.Name, Type: string(s.Spec.Type), Policy: string(s.Spec.ExternalTrafficPolicy),
		Addresses: []string{}, LoadBalancers: []string{}, Ports: []Port{}, Conditions: s.Status.Conditions,
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, Port{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port, NodePort: p.NodePort, Error: portError(s, p)})
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		out.Addresses = append(out.Addresses, cmp.Or(in.IP, in.Hostname))
	}
	out.LoadBalancers = append(out.LoadBalancers, servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation])...)
	return out
}

func portError(s *corev1.Service, p corev1.ServicePort) string {
	for _, in := range s.Status.LoadBalancer.Ingress {
		for _, port := range in.Ports {
			if port.Port == p.Port && port.Protocol == p.Protocol && port.Error != nil {
				return *port.Error
			}
		}
	}
	return ""
}

func newNode(n *corev1.Node) Node {
	out := Node{Name: n.Name, Addresses: []string{}, Excluded: membership.Excluded(n.Labels, true)}
	for _, ip := range cache.InternalIPs(n) {
		out.Addresses = append(out.Addresses, ip.String())
	}
	for _, t := range n.Spec.Taints {
		out.Taints = append(out.Taints, t.ToString())
	}
	return out
}

// duplicatesOf says which node counts for each address of a node that other nodes have as well.
func duplicatesOf(n *corev1.Node, nodes []corev1.Node, several bool) (texts []string) {
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		ip, ok := inputOf(n).Address(family)
		var duplicates []membership.Node
		for i := range nodes {
			if at, _ := inputOf(&nodes[i]).Address(family); ok && at == ip {
				duplicates = append(duplicates, inputOf(&nodes[i]))
			}
		}
		if len(duplicates) < 2 {
			continue
		}
		judged := slices.Clone(duplicates)
		for i := range judged {
			if several {
				judged[i] = membership.ResolveDuplicate(duplicates[i], duplicates, "its address")
			}
		}
		names := make([]string, len(duplicates))
		for i, o := range duplicates {
			names[i] = o.Name
		}
		slices.Sort(names)
		text := fmt.Sprintf("nodes %s have %s", strings.Join(names, ", "), ip)
		if set := membership.OfNodes(slices.Values(judged), family); len(set.Addresses) > 0 {
			counts := set.Addresses[0].Name
			text += "; " + counts + " counts"
			if at := slices.IndexFunc(duplicates, func(o membership.Node) bool { return o.Name == counts }); several {
				text += ", and the address is on load balancer " + cmp.Or(duplicates[at].Place, "none")
			}
		}
		texts = append(texts, text)
	}
	return texts
}

func newPool(p *v1alpha1.BackendPool, now time.Time) Pool {
	out := Pool{
		Namespace: p.Namespace, Name: p.Name, Pool: p.Spec.PoolName, LoadBalancer: p.Spec.LoadBalancer.Name,
		State: v1alpha1.ReasonPending, InProgress: status.IsInProgress(p, now), Desired: p.Status.Desired, Observed: p.Status.Observed, Foreign: p.Status.Foreign, Members: []Member{}, Unnamed: countUnnamed(p.Status.Members),
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		out.State, out.Why, out.Since = c.Reason, c.Message, c.LastTransitionTime.Time
	}
	if cause, since, reason := status.InSyncProblem(p); cause != "" && out.State == v1alpha1.ReasonInSync {
		out.State, out.Since, out.Why = cause, since, reason
	}
	if p.Spec.ServiceRef != nil {
		out.service = p.Spec.ServiceRef.Name
	}
	out.Cause = out.State
	if hints := status.PoolHints(p); len(hints) > 0 {
		out.Cause, out.Why = hints[0].State, hints[0].Why
	}
	switch last := p.Status.LastOutcome; {
	case out.State == v1alpha1.ReasonInSync, out.State == v1alpha1.ConditionContested:
	case last != nil && last.Code != "" && (out.State == v1alpha1.ReasonRetrying || out.State == v1alpha1.ReasonFailed):
		out.Cause, out.Since = last.Code, last.Since.Time
	case out.State == v1alpha1.ReasonPaused:
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionPaused); c != nil {
			out.Since = c.LastTransitionTime.Time
		}
	default: // the condition has the time of its status, and may have had another reason before
		out.Since, out.NotBefore = time.Time{}, out.Since
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionParked); c != nil && c.Status == metav1.ConditionTrue {
		out.Next = c.Message
	}
	if out.State == v1alpha1.ReasonPaused {
		out.Pause = cmp.Or(p.Spec.Pause, &v1alpha1.Pause{})
		out.Next = strings.TrimSuffix("changes are written when it resumes, "+formatPauseEnd(out.Pause)+"; "+out.Next, "; ")
		return out
	}
	if n := p.Status.RetriesUsed; n != nil && *n > 0 {
		out.Next = strings.TrimPrefix(fmt.Sprintf("%s; %d of %d retries are used", out.Next, *n, ptr.Deref(p.Status.RetryBudget, 0)), "; ")
	}
	return out
}

func formatPauseEnd(pause *v1alpha1.Pause) string {
	if pause.Until == nil {
		return "when a user runs weir resume"
	}
	return "at " + humanize.FormatTime(pause.Until.Time) + " by itself"
}

func memberStates(p *v1alpha1.BackendPool, slcs []discoveryv1.EndpointSlice, nodes []corev1.Node, now time.Time) []Member {
	family := lb.Family(cmp.Or(p.Spec.IPFamily, string(lb.IPv4)))
	byName, names := map[string]membership.Node{}, map[netip.Addr]string{}
	var selected []membership.Node
	states := nodesIn(p, family, nodes)
	for i, n := range states {
		byName[n.Name] = n
		for _, ip := range n.IPs {
			names[ip] = n.Name
		}
		if p.Spec.Nodes != nil && matchesSelector(p.Spec.Nodes.Selector, nodes[i].Labels) {
			selected = append(selected, n)
		}
	}
	set := membership.OfNodes(slices.Values(selected), family)
	if p.Spec.ServiceRef != nil {
		of := make([]membership.Slice, len(slcs))
		for i := range slcs {
			of[i] = cache.SliceOf(&slcs[i])
		}
		set = membership.OfService(of, func(name string) (membership.Node, bool) { n, ok := byName[name]; return n, ok }, family)
		set.EarlyJoin = membership.JoinUnknown // the rules are not read: what Weir wrote is right
	}
	set, _, _ = set.JoinEarly(nil, poolmembers.RecordOf(&p.Status), now)
	set, _ = set.RetainLeaving(poolmembers.RecordOf(&p.Status), now)
	return mergeMembers(p, set, names)
}

// nodesIn returns the nodes as input for the members of a pool, in their order.
func nodesIn(p *v1alpha1.BackendPool, family lb.Family, nodes []corev1.Node) []membership.Node {
	ofMachines := p.Spec.Membership == v1alpha1.MembershipNetworkInterface
	record := poolmembers.RecordOf(&p.Status)
	items, duplicates := make([]membership.Node, len(nodes)), map[string][]membership.Node{}
	key := func(n membership.Node) (key, shared string) {
		if ofMachines {
			return n.Machine, "its machine"
		}
		ip, _ := n.Address(family)
		return ip.String(), "its address " + ip.String()
	}
	for i := range nodes {
		n := inputOf(&nodes[i])
		if ofMachines {
			n = cache.WithMachine(n, &nodes[i])
		}
		if ip, _ := n.Address(family); membership.ExcludedByLabel(nodes[i].Labels) {
			n.StaysWhileServing = isExcluded(record.Down[ip].Reason)
		}
		items[i] = n
		k, _ := key(n)
		duplicates[k] = append(duplicates[k], n)
	}
	if !takesPlaced(p) {
		return items
	}
	for i, n := range items {
		k, shared := key(n)
		items[i] = membership.ResolveDuplicate(n, duplicates[k], shared)
		if place := cache.PlaceValue(strings.TrimSuffix(p.Spec.LoadBalancer.Name, "-internal")); n.Place != "" && n.Place != place {
			items[i].Excluded = cmp.Or(n.Excluded, "it is on load balancer "+n.Place)
		}
	}
	return items
}

// inputOf is what decides whether a node is a member of pools of addresses.
func inputOf(n *corev1.Node) membership.Node {
	return membership.Node{
		Name: n.Name, IPs: cache.InternalIPs(n), Place: n.Labels[metadata.PlaceLabel], Excluded: membership.Excluded(n.Labels, true),
		DrainReason: strings.Join(lb.DrainSignals{}.DrainReasons(cache.StateOf(n)), ", "),
	}
}

// takesPlaced reports whether a pool takes the nodes of its load balancer alone, where Weir has several.
func takesPlaced(p *v1alpha1.BackendPool) bool {
	return p.Status.MadeFor == v1alpha1.MadeForNodes || p.Status.MadeFor != "" && p.Spec.Membership == v1alpha1.MembershipNetworkInterface
}

// selectsPlaced reports whether a pool selects the nodes that were placed on its load balancer: there are several.
func selectsPlaced(p v1alpha1.BackendPool) bool {
	return p.Status.MadeFor == v1alpha1.MadeForNodes && p.Spec.Nodes != nil && p.Spec.Nodes.Selector.MatchLabels[metadata.PlaceLabel] != ""
}

// isExcluded reports whether a member is Down because a label excludes its node.
func isExcluded(reason string) bool {
	return slices.Contains(strings.Split(reason, ", "), membership.ReasonExcluded)
}

func mergeMembers(p *v1alpha1.BackendPool, set membership.Set, names map[netip.Addr]string) []Member {
	record, wanted, unusable := recordedByAddress(p), map[string]bool{}, map[string]string{}
	for _, n := range p.Status.Unusable {
		unusable[n.Address] = n.Reason
	}
	out := []Member{}
	for _, a := range set.Addresses {
		m := Member{Node: a.Name, Address: a.IP.String(), State: Missing}
		wanted[m.Address] = true
		if recorded, known := record[m.Address]; known {
			m.State, m.Why = recorded.State, recorded.Why
		}
		if reason := unusable[m.Address]; reason != "" {
			m.State, m.Why = LeftOut, reason
		}
		out = append(out, m)
	}
	for _, address := range p.Status.WrittenAddresses {
		if wanted[address] || isEmpty(p) {
			continue
		}
		ip, _ := netip.ParseAddr(address)
		m := Member{Node: names[ip], Address: address, State: Leaving}
		if at := slices.IndexFunc(set.NonMembers, func(n membership.NonMember) bool { return n.Node == m.Node }); at >= 0 {
			m.Why = set.NonMembers[at].Reason
			set.NonMembers = slices.Delete(slices.Clone(set.NonMembers), at, at+1)
		}
		if m.Why != "" && status.HasLastUp(p) {
			m.State, m.Why = InPool, m.Why+"; it remains up while no other member takes new flows"
		}
		out = append(out, m)
	}
	for _, f := range foreignMembers(p) {
		if !wanted[f.Address] {
			out = append(out, f)
		}
	}
	for _, a := range set.NonMembers {
		out = append(out, Member{Node: a.Node, State: LeftOut, Why: a.Reason})
	}
	slices.SortStableFunc(out, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Address, b.Address)) })
	return out
}

// recordedByAddress returns the recorded members of a pool by address.
func recordedByAddress(p *v1alpha1.BackendPool) map[string]Member {
	of := map[string]Member{}
	for _, address := range p.Status.WrittenAddresses {
		of[address] = Member{Address: address, State: InPool}
	}
	for _, d := range p.Status.Down {
		m := Member{Node: d.Node, Address: d.Address, State: Down, Why: d.Reason}
		if isExcluded(d.Reason) {
			m.Why += "; it leaves when nothing serves on the node, at " + humanize.FormatTime(d.Since.Add(membership.LeavingTimeout)) + " at the latest"
		}
		of[d.Address] = m
	}
	// Addresses are recorded before they are written, so the last read of the pool takes precedence.
	if isEmpty(p) {
		for address, m := range of {
			of[address] = Member{Node: m.Node, Address: address, State: Missing}
		}
	}
	if members := p.Status.Members; members != nil && members.Missing != nil {
		for _, m := range members.Missing.Named {
			of[m.Address] = Member{Node: m.Node, Address: m.Address, State: Missing}
		}
	}
	return of
}

// isEmpty reports whether the last read showed no address, or no such pool.
func isEmpty(p *v1alpha1.BackendPool) bool {
	return p.Status.Observed != nil && *p.Status.Observed == 0
}

func countUnnamed(members *v1alpha1.OutOfSyncMembers) (n int) {
	if members == nil {
		return 0
	}
	for _, sample := range []*v1alpha1.MemberSample{members.Missing, members.Surplus, members.Foreign} {
		if sample != nil {
			n += int(sample.Count) - len(sample.Named)
		}
	}
	return n
}

func foreignMembers(p *v1alpha1.BackendPool) (out []Member) {
	if members := p.Status.Members; members != nil && members.Foreign != nil {
		for _, m := range members.Foreign.Named {
			out = append(out, Member{Node: m.Node, Address: m.Address, State: Foreign})
		}
	}
	return out
}

func recordedMembers(p *v1alpha1.BackendPool) []Member {
	out, record := []Member{}, recordedByAddress(p)
	for _, address := range p.Status.WrittenAddresses {
		out = append(out, record[address])
	}
	return append(out, foreignMembers(p)...)
}

func findMember(p *v1alpha1.BackendPool, n *corev1.Node) (Member, bool) {
	record := recordedByAddress(p)
	for _, ip := range cache.InternalIPs(n) {
		if m, ok := record[ip.String()]; ok {
			m.Node = n.Name
			return m, true
		}
	}
	return Member{}, false
}

// findSelected returns a node among the members that a pool wants, or leaves out.
func findSelected(members []Member, node string) (Member, bool) {
	at := slices.IndexFunc(members, func(m Member) bool { return m.Node == node })
	if at < 0 {
		return Member{}, false
	}
	return members[at], true
}

// poollessReason describes why no pool has a node.
func poollessReason(pools []v1alpha1.BackendPool, selected, nodesUnseen bool) string {
	ofServices := "pools of Services have only the nodes of their ready endpoints, and none is on it"
	switch {
	case len(pools) == 0:
		return "none has it: the cluster has no BackendPool"
	case nodesUnseen:
		return "none has it; you may not list Nodes, so the reason is not known"
	case !slices.ContainsFunc(pools, func(p v1alpha1.BackendPool) bool { return p.Spec.Nodes != nil }):
		return "none has it: no BackendPool is of nodes; " + ofServices
	case !selected:
		return "none has it: no BackendPool of nodes selects its labels; " + ofServices
	}
	return "none has it; " + ofServices
}

func matchesSelector(selector metav1.LabelSelector, of map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && s.Matches(labels.Set(of))
}
