// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/apiserver"
	"weir.dev/weir/lab/armemu"
)

// Level returns the differences between the desired state and Azure, statuses and records, or nil.
// Call it after faults have ended and time has passed.
func (s *Stage) Level() error {
	f, err := s.facts()
	if err != nil {
		return err
	}
	c, err := s.observe()
	if err != nil {
		return err
	}
	var all []error
	want := f.lines()
	all = append(all, differs(want, slices.DeleteFunc(c.lines(s.isForeign), func(line string) bool {
		return !slices.Contains(want, line) && (f.mayStay(line) || s.othersKeep(c, line))
	}))...)
	all = append(all, s.statuses(f, c)...)
	all = append(all, s.admissions(f, c)...)
	all = append(all, backendPools(f, c)...)
	all = append(all, s.leftovers(f, c)...)
	all = append(all, s.peoplesOwn(f, c)...)
	all = append(all, f.placements()...)
	all = append(all, s.edges(f, c)...)
	all = append(all, s.untainted(f)...)
	if !s.opts.Indoors {
		all = append(all, c.wayOut()...)
	}
	all = append(all, s.kinds(c)...)
	all = append(all, s.publications(f, c)...)
	return errors.Join(all...)
}

// differs compares lines.
func differs(want, is []string) []error {
	var all []error
	slices.Sort(want)
	slices.Sort(is)
	for _, line := range want {
		if !slices.Contains(is, line) {
			all = append(all, fmt.Errorf("lacking in Azure: %s", line))
		}
	}
	for _, line := range is {
		if !slices.Contains(want, line) {
			all = append(all, fmt.Errorf("too much in Azure: %s", line))
		}
	}
	return all
}

// addressOf returns the address of the frontend with this label.
func (c cloud) addressOf(label string) string {
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			if f.label() == label {
				return c.address(f)
			}
		}
	}
	return ""
}

// statuses compares Service statuses with Azure.
func (s *Stage) statuses(f facts, c cloud) []error {
	var all []error
	for i := range f.services {
		svc := &f.services[i]
		var want, is []string
		if ours(svc) {
			for _, family := range svc.Spec.IPFamilies {
				want = append(want, c.addressOf(labelOf(svc, family)))
			}
		}
		for _, in := range svc.Status.LoadBalancer.Ingress {
			is = append(is, in.IP)
		}
		slices.Sort(want)
		slices.Sort(is)
		if !slices.Equal(want, is) {
			all = append(all, fmt.Errorf("the status of %s/%s shows %v, and its addresses are %v", svc.Namespace, svc.Name, is, want))
		}
		if !ours(svc) && slices.ContainsFunc(svc.Finalizers, func(n string) bool { return strings.HasPrefix(n, "weir.dev/") }) {
			all = append(all, fmt.Errorf("%s/%s is not Weir's, and has its finalizer", svc.Namespace, svc.Name))
		}
	}
	return all
}

// admissions tests flows against the security group.
func (s *Stage) admissions(f facts, c cloud) []error {
	var all []error
	for flow, want := range f.flows(c.addressOf) {
		if is := c.admits(flow.from, flow.to, flow.protocol, flow.port); is != want {
			all = append(all, fmt.Errorf("the security group admits %s: %t, want %t", flow, is, want))
		}
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all
}

// backendPools compares the BackendPools with the Services that need one.
func backendPools(f facts, c cloud) []error {
	var all []error
	for i := range f.pools {
		p := &f.pools[i]
		synced := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced)
		switch {
		case p.Spec.LoadBalancer.Name == edge: // reported by another check
		case p.DeletionTimestamp != nil:
			all = append(all, fmt.Errorf("BackendPool %s/%s is still being deleted", p.Namespace, p.Name))
		case synced != nil && synced.Reason == v1alpha1.ReasonPoolNotFound && p.Spec.Nodes != nil && !f.allNodes(p.Spec.LoadBalancer.Name, familyOf(p.Spec.PoolName)) && !c.hasPool(poolOf(p)):
			// no traffic: its load balancer was recreated without this pool
		case synced == nil || synced.Reason != v1alpha1.ReasonLevel && !p.Spec.Paused:
			all = append(all, fmt.Errorf("BackendPool %s/%s is not level: %s", p.Namespace, p.Name, spell(synced)))
		case p.Spec.ServiceRef != nil && !slices.ContainsFunc(f.services, func(svc corev1.Service) bool {
			return svc.Namespace == p.Namespace && svc.Name == p.Spec.ServiceRef.Name
		}):
			all = append(all, fmt.Errorf("BackendPool %s/%s has no Service %s", p.Namespace, p.Name, p.Spec.ServiceRef.Name))
		}
	}
	return all
}

// allNodes reports whether a Service uses the pool of all nodes on a load balancer.
func (f facts) allNodes(balancer string, family corev1.IPFamily) bool {
	return slices.ContainsFunc(f.services, func(svc corev1.Service) bool {
		return ours(&svc) && f.balancerOf(&svc) == balancer && !local(&svc) && slices.Contains(svc.Spec.IPFamilies, family)
	})
}

func spell(synced any) string {
	text, _ := json.Marshal(synced)
	return string(text)
}

// leftovers finds resources of Services that are deleted or no longer managed.
func (s *Stage) leftovers(f facts, c cloud) []error {
	var all []error
	alive := map[string]bool{}
	for i := range f.services {
		svc := &f.services[i]
		if ours(svc) {
			alive[owner(svc)] = true
		}
		if svc.DeletionTimestamp != nil {
			all = append(all, fmt.Errorf("%s/%s is still being deleted, with %v", svc.Namespace, svc.Name, svc.Finalizers))
		}
	}
	for owner, key := range s.owners {
		if !alive[owner] && strings.Contains(c.text, owner) && !s.shared(owner, c) {
			all = append(all, fmt.Errorf("something in Azure is of %s (%s), which has no load balancer any more", key, owner))
		}
	}
	hosts := map[string]bool{}
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			hosts[c.address(f)] = true
		}
	}
	for i := range f.nodes {
		for _, a := range f.nodes[i].Status.Addresses {
			hosts[a.Address] = true
		}
	}
	for address, lives := range s.gone {
		hosts[address] = s.lives() > lives // a node deleted by the running process stays (0010)
	}
	for _, r := range c.rules {
		if !strings.HasPrefix(r.Name, "k8s-azure-lb_") {
			continue
		}
		for _, to := range append(r.Properties.Destinations, r.Properties.Destination) {
			if to != "" && !hosts[to] {
				all = append(all, fmt.Errorf("security rule %s is about %s, which is nobody's", r.Name, to))
			}
		}
	}
	return all
}

// shared reports whether a frontend keeps the name of its first Service because others share its
// address.
func (s *Stage) shared(owner string, c cloud) bool {
	rest := c.text
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			if f.Properties.PublicIP == nil || s.peoples[strings.ToLower(f.Properties.PublicIP.ID)] == "" {
				continue
			}
			rest = strings.ReplaceAll(rest, f.Name, "")
		}
	}
	for _, f := range s.retained(c) {
		rest = strings.ReplaceAll(rest, f.name, "")
	}
	return !strings.Contains(rest, owner)
}

// peoplesOwn checks that resources of other owners are unchanged.
func (s *Stage) peoplesOwn(f facts, c cloud) []error {
	var all []error
	for member := range s.foreign {
		if s.stays(member) && !c.holds(member) {
			all = append(all, fmt.Errorf("%s has lost %s, which others had put there", member.pool, member.ip))
		}
	}
	if !slices.ContainsFunc(c.rules, func(r securityRule) bool { return r.Name == "ssh" }) {
		all = append(all, errors.New("the security group has lost the rule ssh, which others had put there"))
	}
	for _, e := range f.events {
		if hasToken(e.Message) {
			all = append(all, fmt.Errorf("an event tells a token: %s", e.Message))
		}
	}
	for _, shown := range []any{f.services, f.nodes, f.pools} {
		if text, _ := json.Marshal(shown); hasToken(string(text)) {
			all = append(all, fmt.Errorf("an object tells a token: %s", text))
		}
	}
	return append(all, s.named()...)
}

// named checks that public IPs created by users exist.
func (s *Stage) named() []error {
	var all []error
	for _, id := range slices.Sorted(maps.Keys(s.peoples)) {
		var p publicIP
		if raw, there := s.emu.Get(id); there {
			if err := json.Unmarshal(raw, &p); err != nil {
				return append(all, fmt.Errorf("%s: %w", id, err))
			}
		}
		if is := p.Properties.IP; is != s.peoples[id] {
			all = append(all, fmt.Errorf("public IP %s, which people made, was %s and is %q", id, s.peoples[id], is))
		}
	}
	return all
}

// traffic counts requests.
type traffic struct {
	azure, api int // log positions
}

// since returns the requests since its last call: writes without leases, and the number of reads.
func (s *Stage) since() (writes []string, reads int) {
	calls := s.emu.Calls(func(c armemu.Call) bool { return c.Seq > uint64(s.counted.azure) }) //nolint:gosec // small
	for _, c := range calls {
		s.counted.azure = int(c.Seq) //nolint:gosec // small
		if c.Method == http.MethodGet {
			reads++
			continue
		}
		writes = append(writes, fmt.Sprintf("%s %s %s: %d", s.clock(c.Time), c.Method, c.Path, c.Status))
	}
	requests := s.api.Log()
	for _, r := range requests[min(s.counted.api, len(requests)):] {
		switch {
		case !strings.HasPrefix(r.Client, "weir-") || r.Resource == "leases":
		case isWrite(r):
			writes = append(writes, s.clock(r.At)+" "+r.String())
		default:
			reads++
		}
	}
	s.counted.api = len(requests)
	return writes, reads
}

func isWrite(r apiserver.Request) bool {
	return !slices.Contains([]string{"get", "list", "watch", "discover"}, strings.ToLower(r.Verb))
}

// Settles waits until everything is in sync, at most for the given time, and returns the remaining
// differences.
func (s *Stage) Settles(most time.Duration) error {
	for end := time.Now().Add(most); ; {
		err := s.Level()
		if err == nil {
			return nil
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("not level within %s:\n%w", most, err)
		}
		s.Pass(5 * time.Second)
	}
}

// Rests lets an hour pass and checks that nothing is written and few requests are sent.
func (s *Stage) Rests(reads int) error {
	s.since()
	s.Pass(time.Hour)
	writes, n := s.since()
	var all []error
	if len(writes) > 0 {
		all = append(all, fmt.Errorf("%d writes in an hour in which nothing changed:\n%s", len(writes), strings.Join(writes[:min(len(writes), 20)], "\n")))
	}
	if n > reads {
		all = append(all, fmt.Errorf("%d reads in an hour in which nothing changed, want %d at most", n, reads))
	}
	return errors.Join(append(all, s.Level())...)
}
