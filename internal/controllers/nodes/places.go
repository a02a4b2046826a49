// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

type nodePlace struct {
	uid types.UID
	// set is its scale set or availability set, if known is true.
	set        string
	isSetKnown bool
	// isAssigned is true from the choice until the cache shows the label: on is newer than the label.
	isAssigned    bool
	configuration string
	// isUnplaceable is true if no load balancer may have the node, its machine is deleted, or it lacks a providerID
	// for too long.
	isUnplaceable bool
	// reasonKey is the event key and why the reason for a missing placement; both empty if placed.
	reasonKey, reasonText string
}

// placementStore is the placement state of all nodes by name. The zero value is ready to use with a single load
// balancer.
type placementStore struct {
	// configurations are the configurations; names maps label values to their names.
	configurations []service.Configuration
	names          map[string]string
	// observed returns the configurations of nodes in Azure; availabilitySet returns the set of a machine.
	observed        func(context.Context) (map[string]string, error)
	availabilitySet func(ctx context.Context, providerID string) (string, error)

	mu  sync.Mutex
	all map[string]*nodePlace
	// notBefore is an unexpired Retry-After.
	notBefore time.Time
}

// observedPlaces are the configurations of nodes in Azure, by address and by lb.MachineKey.
type observedPlaces map[string]string

// nodeState returns the state of a node by UID. The caller holds the lock.
func (p *placementStore) nodeState(n *corev1.Node) *nodePlace {
	place := p.all[n.Name]
	if place == nil || place.uid != n.UID {
		place = &nodePlace{uid: n.UID}
		if p.all == nil {
			p.all = map[string]*nodePlace{}
		}
		p.all[n.Name] = place
	}
	return place
}

func (p *placementStore) bySets() bool {
	return slices.ContainsFunc(p.configurations, func(c service.Configuration) bool { return c.PrimaryVMSet != "" })
}

// updateNode updates the state of a node.
func (p *placementStore) updateNode(n *corev1.Node, change func(*nodePlace)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.nodeState(n))
}

func (p *placementStore) isSetKnown(n *corev1.Node) (known bool) {
	p.updateNode(n, func(place *nodePlace) { known = place.isSetKnown })
	return known
}

func (p *placementStore) isUnplaceable(n *corev1.Node) (unplaceable bool) {
	p.updateNode(n, func(place *nodePlace) { unplaceable = place.isUnplaceable })
	return unplaceable
}

func (p *placementStore) recordSet(n *corev1.Node, set string) {
	p.updateNode(n, func(place *nodePlace) { place.set, place.isSetKnown = set, true })
}

// setReason records why a node is not placed, and reports whether the word differs from the last one.
func (p *placementStore) setReason(n *corev1.Node, word, reason string) (changed bool) {
	p.updateNode(n, func(place *nodePlace) {
		changed = place.reasonKey != word && word != ""
		place.reasonKey, place.reasonText = word, reason
	})
	return changed
}

func (p *placementStore) forgetNode(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}

func (p *placementStore) setRetryAfter(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.notBefore) {
		p.notBefore = until
	}
}

// checkRetryAfter returns an error during a Retry-After.
func (p *placementStore) checkRetryAfter(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.notBefore.After(now) {
		return nil
	}
	return &armerror.Fault{
		Class: armerror.Retriable, Code: armerror.CodeRetryAfter, Reason: "retry_after", RetryAt: p.notBefore,
		Err: errors.New("not read: Azure is throttling"),
	}
}

// configurationOf returns the configuration of a node by the last choice or its label; "" for none.
func (p *placementStore) configurationOf(n *corev1.Node) (on string) {
	p.updateNode(n, func(place *nodePlace) { on = place.currentConfiguration(p.names[n.Labels[metadata.PlaceLabel]]) })
	return on
}

// currentConfiguration returns the configuration given the one of the label.
func (place *nodePlace) currentConfiguration(labelled string) string {
	if place.isAssigned && place.configuration != labelled {
		return place.configuration
	}
	place.isAssigned = false
	return labelled
}

// assignFixed assigns a node with a known set to the configuration that does not depend on other nodes, and
// returns it; "" for none.
func (p *placementStore) assignFixed(n *corev1.Node, shown observedPlaces) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, _ := p.newCandidate(n, shown)
	on := service.PlaceOf(c, p.configurations)
	if on != "" {
		p.assignNode(n, on)
	}
	return on
}

// assignBest assigns a node among all others; "" if no load balancer may have it.
func (p *placementStore) assignBest(n *corev1.Node, nodes []*corev1.Node, shown observedPlaces) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var items []service.Node
	for _, other := range nodes {
		if c, ok := p.newCandidate(other, shown); ok {
			items = append(items, c)
		}
	}
	on := service.PlaceNodes(items, p.configurations)[n.Name]
	p.assignNode(n, on)
	return on
}

func (p *placementStore) assignNode(n *corev1.Node, on string) {
	place := p.nodeState(n)
	place.isAssigned, place.configuration, place.isUnplaceable = on != p.names[n.Labels[metadata.PlaceLabel]], on, on == ""
}

// newCandidate returns a node for placement; false if nothing is known about it. A node placed by an earlier
// process counts as part of that configuration's set until its set is known.
func (p *placementStore) newCandidate(n *corev1.Node, shown observedPlaces) (service.Node, bool) {
	place := p.nodeState(n)
	c := service.Node{Name: n.Name, Labels: n.Labels, VMSet: place.set, Previous: place.currentConfiguration(p.names[n.Labels[metadata.PlaceLabel]])}
	if conf, ok := service.ConfigurationOf(c.Previous, p.configurations); ok && !place.isSetKnown {
		c.VMSet = conf.PrimaryVMSet
		return c, true
	}
	if c.Previous == "" {
		c.Previous = shown.configurationOf(n)
	}
	return c, place.isSetKnown
}

// configurationOf returns the configuration of a node in Azure; "" for none.
func (o observedPlaces) configurationOf(n *corev1.Node) string {
	keys := []string{lb.MachineKey(n.Spec.ProviderID)}
	for _, ip := range cache.InternalIPs(n) {
		keys = append(keys, ip.String())
	}
	for _, key := range keys {
		if on := o[key]; on != "" {
			return on
		}
	}
	return ""
}

// firstUnplaced returns the first node by name that lacks the label and is not known to get none, and why; "" if
// none.
func (p *placementStore) firstUnplaced(nodes []*corev1.Node) (name, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		if p.names[n.Labels[metadata.PlaceLabel]] != "" || name != "" && n.Name > name {
			continue
		}
		if place := p.nodeState(n); !place.isUnplaceable {
			name, reason = n.Name, place.reasonText
		}
	}
	return name, reason
}
