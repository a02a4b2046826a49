// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/config"
)

// Taint and time annotation of an announced node eviction.
const (
	evictionTaint        = "cloudprovider.azure.microsoft.com/draining"
	preemptionAnnotation = "weir.dev/preemption"
)

// addEvictions schedules announced evictions and their withdrawal.
func addEvictions(d *scheduleBuilder) {
	percent := pickOne(d, 50, 50, 75, 0)
	d.addConfig(func(c *config.Config) { c.NodeAdminStateMinAvailablePercent = &percent })
	for range 5 + d.IntN(6) {
		n := d.IntN(4)
		if d.IntN(4) == 0 {
			d.addStep(func(s *Stage) error {
				return s.ChangeNode(n, func(node *corev1.Node) { node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isEviction) })
			}, "somebody clears the taint of node %d", n)
			continue
		}
		d.addStep(func(s *Stage) error { return s.AnnounceEviction(n) }, "the eviction of node %d is announced", n)
	}
}

func isEviction(t corev1.Taint) bool { return t.Key == evictionTaint && t.Value == "spot-eviction" }

// AnnounceEviction announces the eviction of a node, or repeats the announcement.
func (s *Stage) AnnounceEviction(number int) error {
	n := &corev1.Node{}
	if err := s.userClient.Get(ctx, client.ObjectKey{Name: nodeName(number)}, n); err != nil {
		return err
	}
	now := metav1.NewTime(time.Now())
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "preempt-" + string(n.UID)},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID},
		Reason:         "PreemptScheduled", Message: "Preempt", Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "node-problem-detector"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	err := s.userClient.Create(ctx, e)
	if apierrors.IsAlreadyExists(err) {
		err = s.editObject(e, client.ObjectKeyFromObject(e), func() { e.Count, e.LastTimestamp = e.Count+1, now })
	}
	if _, cleared := s.evictionNotices[string(n.UID)]; err == nil && !cleared {
		s.evictionNotices[string(n.UID)] = true
	}
	return err
}

// recordTaintsCleared records that a user removed the taints of a node.
func (s *Stage) recordTaintsCleared(n *corev1.Node) {
	if _, ok := s.evictionNotices[string(n.UID)]; ok && !slices.ContainsFunc(n.Spec.Taints, isEviction) {
		s.evictionNotices[string(n.UID)] = false
	}
}

// checkEvictionTaints finds nodes with an announced eviction but no taint. A taint cleared by a user ends the
// announcement.
func (s *Stage) checkEvictionTaints(f objects) []error {
	var errs []error
	for i := range f.nodes {
		n := &f.nodes[i]
		if f.adminStates && s.evictionNotices[string(n.UID)] && !slices.ContainsFunc(n.Spec.Taints, isEviction) {
			errs = append(errs, fmt.Errorf("the eviction of node %s was announced, and it has no taint", n.Name))
		}
	}
	return errs
}

// downAddresses returns the addresses that take no new flows: those out of service, and of those with an
// announced eviction the first ones, as long as enough members stay up.
func (o objects) downAddresses(members []string) []string {
	type leaving struct {
		name, address string
		at            time.Time
	}
	var addresses []string
	var announced []leaving
	for i := range o.nodes {
		n := &o.nodes[i]
		at := slices.IndexFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return slices.Contains(members, a.Address) })
		switch {
		case !o.adminStates || at < 0:
		case slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }):
			addresses = append(addresses, n.Status.Addresses[at].Address)
		case slices.ContainsFunc(n.Spec.Taints, isEviction):
			var record struct{ At time.Time }
			_ = json.Unmarshal([]byte(n.Annotations[preemptionAnnotation]), &record) // invalid JSON: no time
			announced = append(announced, leaving{n.Name, n.Status.Addresses[at].Address, record.At})
		}
	}
	slices.SortFunc(announced, func(a, b leaving) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	stay := 0
	if o.minAvailablePercent > 0 {
		stay = max(1, (len(members)*o.minAvailablePercent+99)/100)
	}
	for _, l := range announced[:min(len(announced), max(0, len(members)-len(addresses)-stay))] {
		addresses = append(addresses, l.address)
	}
	return addresses
}

// isInFamily reports whether an address belongs to a family.
func isInFamily(text string, family corev1.IPFamily) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Is6() == (family == corev1.IPv6Protocol)
}
