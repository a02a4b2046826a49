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

// CheckInSync returns the differences between the desired state and Azure, statuses and records, or nil.
// Call it after faults have ended and time has passed.
func (s *Stage) CheckInSync() error {
	f, err := s.readObjects()
	if err != nil {
		return err
	}
	c, err := s.readAzure()
	if err != nil {
		return err
	}
	var errs []error
	want := f.formatLines()
	errs = append(errs, diffLines(want, slices.DeleteFunc(c.formatLines(s.isForeign), func(line string) bool {
		return !slices.Contains(want, line) && (f.isUnusedNodePool(line) || s.isRetained(c, line))
	}))...)
	errs = append(errs, s.checkStatuses(f, c)...)
	errs = append(errs, s.checkFlows(f, c)...)
	errs = append(errs, checkBackendPools(f, c)...)
	errs = append(errs, s.checkLeftovers(f, c)...)
	errs = append(errs, s.checkUnmanaged(f, c)...)
	errs = append(errs, f.checkPlacements()...)
	errs = append(errs, s.checkUnmanagedPools(f, c)...)
	errs = append(errs, s.checkEvictionTaints(f)...)
	if !s.opts.NoOutboundPool {
		errs = append(errs, c.checkOutbound()...)
	}
	errs = append(errs, s.checkMemberTypes(c)...)
	errs = append(errs, s.checkLinkServices(f, c)...)
	return errors.Join(errs...)
}

func diffLines(want, got []string) []error {
	var errs []error
	slices.Sort(want)
	slices.Sort(got)
	for _, line := range want {
		if !slices.Contains(got, line) {
			errs = append(errs, fmt.Errorf("lacking in Azure: %s", line))
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			errs = append(errs, fmt.Errorf("too much in Azure: %s", line))
		}
	}
	return errs
}

// addressOf returns the address of the frontend with this label.
func (s azureState) addressOf(label string) string {
	for _, b := range s.balancers {
		for _, f := range b.Properties.Frontends {
			if f.publicLabel() == label {
				return s.frontendAddress(f)
			}
		}
	}
	return ""
}

// checkStatuses compares Service statuses with Azure.
func (s *Stage) checkStatuses(f objects, c azureState) []error {
	var errs []error
	for i := range f.services {
		svc := &f.services[i]
		var want, got []string
		if isManaged(svc) {
			for _, family := range svc.Spec.IPFamilies {
				want = append(want, c.addressOf(frontendLabel(svc, family)))
			}
		}
		for _, in := range svc.Status.LoadBalancer.Ingress {
			got = append(got, in.IP)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			errs = append(errs, fmt.Errorf("the status of %s/%s shows %v, and its addresses are %v", svc.Namespace, svc.Name, got, want))
		}
		if !isManaged(svc) && slices.ContainsFunc(svc.Finalizers, func(n string) bool { return strings.HasPrefix(n, "weir.dev/") }) {
			errs = append(errs, fmt.Errorf("%s/%s is not Weir's, and has its finalizer", svc.Namespace, svc.Name))
		}
	}
	return errs
}

// checkFlows tests flows against the security group.
func (s *Stage) checkFlows(f objects, c azureState) []error {
	var errs []error
	for flow, want := range f.sampledFlows(c.addressOf) {
		if isAllowed := c.isAllowed(flow.from, flow.to, flow.protocol, flow.port); isAllowed != want {
			errs = append(errs, fmt.Errorf("the security group admits %s: %t, want %t", flow, isAllowed, want))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// checkBackendPools compares the BackendPools with the Services that need one.
func checkBackendPools(f objects, c azureState) []error {
	var errs []error
	for i := range f.pools {
		p := &f.pools[i]
		synced := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced)
		switch {
		case p.Spec.LoadBalancer.Name == unmanagedName: // reported by another check
		case p.DeletionTimestamp != nil:
			errs = append(errs, fmt.Errorf("BackendPool %s/%s is still being deleted", p.Namespace, p.Name))
		case synced != nil && synced.Reason == v1alpha1.ReasonPoolNotFound && p.Spec.Nodes != nil && !f.usesNodePool(p.Spec.LoadBalancer.Name, poolFamily(p.Spec.PoolName)) && !c.hasPool(poolKey(p)):
			// no traffic: its load balancer was recreated without this pool
		case synced == nil || synced.Reason != v1alpha1.ReasonInSync && !p.Spec.Paused:
			errs = append(errs, fmt.Errorf("BackendPool %s/%s is not in sync: %s", p.Namespace, p.Name, formatJSON(synced)))
		case p.Spec.ServiceRef != nil && !slices.ContainsFunc(f.services, func(svc corev1.Service) bool {
			return svc.Namespace == p.Namespace && svc.Name == p.Spec.ServiceRef.Name
		}):
			errs = append(errs, fmt.Errorf("BackendPool %s/%s has no Service %s", p.Namespace, p.Name, p.Spec.ServiceRef.Name))
		}
	}
	return errs
}

// usesNodePool reports whether a Service uses the pool of all nodes on a load balancer.
func (o objects) usesNodePool(balancer string, family corev1.IPFamily) bool {
	return slices.ContainsFunc(o.services, func(svc corev1.Service) bool {
		return isManaged(&svc) && o.loadBalancerName(&svc) == balancer && !isLocal(&svc) && slices.Contains(svc.Spec.IPFamilies, family)
	})
}

func formatJSON(synced any) string {
	text, _ := json.Marshal(synced)
	return string(text)
}

// checkLeftovers finds resources of Services that are deleted or no longer managed.
func (s *Stage) checkLeftovers(f objects, c azureState) []error {
	var errs []error
	alive := map[string]bool{}
	for i := range f.services {
		svc := &f.services[i]
		if isManaged(svc) {
			alive[ownerName(svc)] = true
		}
		if svc.DeletionTimestamp != nil {
			errs = append(errs, fmt.Errorf("%s/%s is still being deleted, with %v", svc.Namespace, svc.Name, svc.Finalizers))
		}
	}
	for owner, key := range s.serviceOwners {
		if !alive[owner] && strings.Contains(c.text, owner) && !s.isFrontendShared(owner, c) {
			errs = append(errs, fmt.Errorf("something in Azure is of %s (%s), which has no load balancer any more", key, owner))
		}
	}
	hosts := map[string]bool{}
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			hosts[c.frontendAddress(f)] = true
		}
	}
	for i := range f.nodes {
		for _, a := range f.nodes[i].Status.Addresses {
			hosts[a.Address] = true
		}
	}
	for address, lives := range s.deletedAddresses {
		hosts[address] = s.processCount() > lives // a node deleted during this process is retained (0010)
	}
	for _, r := range c.rules {
		if !strings.HasPrefix(r.Name, "k8s-azure-lb_") {
			continue
		}
		for _, to := range append(r.Properties.Destinations, r.Properties.Destination) {
			if to != "" && !hosts[to] {
				errs = append(errs, fmt.Errorf("security rule %s is about %s, which is nobody's", r.Name, to))
			}
		}
	}
	return errs
}

// isFrontendShared reports whether a frontend keeps the name of its first Service because others share its
// address.
func (s *Stage) isFrontendShared(owner string, c azureState) bool {
	rest := c.text
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			if f.Properties.PublicIP == nil || s.userIPs[strings.ToLower(f.Properties.PublicIP.ID)] == "" {
				continue
			}
			rest = strings.ReplaceAll(rest, f.Name, "")
		}
	}
	for _, f := range s.retainedFrontends(c) {
		rest = strings.ReplaceAll(rest, f.name, "")
	}
	return !strings.Contains(rest, owner)
}

// checkUnmanaged checks that resources of other owners are unchanged.
func (s *Stage) checkUnmanaged(f objects, c azureState) []error {
	var errs []error
	for member := range s.foreign {
		if s.mustRemain(member) && !c.hasMember(member) {
			errs = append(errs, fmt.Errorf("%s has lost %s, which others had put there", member.pool, member.ip))
		}
	}
	if !slices.ContainsFunc(c.rules, func(r securityRule) bool { return r.Name == "ssh" }) {
		errs = append(errs, errors.New("the security group has lost the rule ssh, which others had put there"))
	}
	for _, e := range f.events {
		if hasToken(e.Message) {
			errs = append(errs, fmt.Errorf("an event tells a token: %s", e.Message))
		}
	}
	for _, shown := range []any{f.services, f.nodes, f.pools} {
		if text, _ := json.Marshal(shown); hasToken(string(text)) {
			errs = append(errs, fmt.Errorf("an object tells a token: %s", text))
		}
	}
	return append(errs, s.checkUserIPs()...)
}

// checkUserIPs checks that public IPs created by users exist.
func (s *Stage) checkUserIPs() []error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(s.userIPs)) {
		var p publicIP
		if raw, ok := s.emulator.Get(id); ok {
			if err := json.Unmarshal(raw, &p); err != nil {
				return append(errs, fmt.Errorf("%s: %w", id, err))
			}
		}
		if got := p.Properties.IP; got != s.userIPs[id] {
			errs = append(errs, fmt.Errorf("public IP %s, which people made, was %s and is %q", id, s.userIPs[id], got))
		}
	}
	return errs
}

// traffic counts requests.
type traffic struct {
	azure, api int // log positions
}

// trafficSince returns the requests since its last call: writes without leases, and the number of reads.
func (s *Stage) trafficSince() (writes []string, reads int) {
	calls := s.emulator.Calls(func(c armemu.Call) bool { return c.Seq > uint64(s.lastTraffic.azure) }) //nolint:gosec // small
	for _, c := range calls {
		s.lastTraffic.azure = int(c.Seq) //nolint:gosec // small
		if c.Method == http.MethodGet {
			reads++
			continue
		}
		writes = append(writes, fmt.Sprintf("%s %s %s: %d", s.formatTime(c.Time), c.Method, c.Path, c.Status))
	}
	requests := s.api.Log()
	for _, r := range requests[min(s.lastTraffic.api, len(requests)):] {
		switch {
		case !strings.HasPrefix(r.Client, "weir-") || r.Resource == "leases":
		case isWrite(r):
			writes = append(writes, s.formatTime(r.At)+" "+r.String())
		default:
			reads++
		}
	}
	s.lastTraffic.api = len(requests)
	return writes, reads
}

func isWrite(r apiserver.Request) bool {
	return !slices.Contains([]string{"get", "list", "watch", "discover"}, strings.ToLower(r.Verb))
}

// WaitInSync waits until everything is in sync, at most for the given time, and returns the remaining
// differences.
func (s *Stage) WaitInSync(limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		err := s.CheckInSync()
		if err == nil {
			return nil
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("not in sync within %s:\n%w", limit, err)
		}
		s.Sleep(5 * time.Second)
	}
}

// CheckIdleHour waits an hour and checks that nothing is written and few requests are sent.
func (s *Stage) CheckIdleHour(reads int) error {
	s.trafficSince()
	s.Sleep(time.Hour)
	writes, n := s.trafficSince()
	var errs []error
	if len(writes) > 0 {
		errs = append(errs, fmt.Errorf("%d writes in an hour in which nothing changed:\n%s", len(writes), strings.Join(writes[:min(len(writes), 20)], "\n")))
	}
	if n > reads {
		errs = append(errs, fmt.Errorf("%d reads in an hour in which nothing changed, want %d at most", n, reads))
	}
	return errors.Join(append(errs, s.CheckInSync())...)
}
