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

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

type nodePlace struct {
	uid types.UID
	// set is its scale set or availability set, if known is true.
	set   string
	known bool
	// given is true from the choice until the cache shows the label: on is newer than the label.
	given bool
	on    string
	// nowhere is true if no load balancer may have the node, its machine is deleted, or it lacks a providerID
	// for too long.
	nowhere bool
	// told is the event key and why the reason for a missing placement; both empty if placed.
	told, why string
}

// places is the placement state of all nodes by name. The zero value is ready to use with a single load
// balancer.
type places struct {
	// several are the configurations; names maps label values to their names.
	several []service.Configuration
	names   map[string]string
	// shown returns the configurations of nodes in Azure; availabilitySet returns the set of a machine.
	shown           func(context.Context) (map[string]string, error)
	availabilitySet func(ctx context.Context, providerID string) (string, error)

	mu  sync.Mutex
	all map[string]*nodePlace
	// notBefore is an unexpired Retry-After.
	notBefore time.Time
}

// shownPlaces are the configurations of nodes in Azure, by address and by lb.MachineKey.
type shownPlaces map[string]string

// of returns the state of a node by UID. The caller holds the lock.
func (p *places) of(n *corev1.Node) *nodePlace {
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

func (p *places) bySets() bool {
	return slices.ContainsFunc(p.several, func(c service.Configuration) bool { return c.PrimaryVMSet != "" })
}

// note updates the state of a node.
func (p *places) note(n *corev1.Node, change func(*nodePlace)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.of(n))
}

func (p *places) knows(n *corev1.Node) (known bool) {
	p.note(n, func(place *nodePlace) { known = place.known })
	return known
}

func (p *places) isNowhere(n *corev1.Node) (is bool) {
	p.note(n, func(place *nodePlace) { is = place.nowhere })
	return is
}

func (p *places) learn(n *corev1.Node, set string) {
	p.note(n, func(place *nodePlace) { place.set, place.known = set, true })
}

// tell records why a node is not placed, and reports whether the word differs from the last one.
func (p *places) tell(n *corev1.Node, word, why string) (news bool) {
	p.note(n, func(place *nodePlace) {
		news = place.told != word && word != ""
		place.told, place.why = word, why
	})
	return news
}

func (p *places) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}

func (p *places) rest(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.notBefore) {
		p.notBefore = until
	}
}

// open returns an error during a Retry-After.
func (p *places) open(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.notBefore.After(now) {
		return nil
	}
	return &fault.Fault{
		Class: fault.Retriable, Code: fault.CodeResting, Reason: "retry_after", RetryAt: p.notBefore,
		Err: errors.New("not asked: Azure wants patience"),
	}
}

// on returns the configuration of a node by the last choice or its label; "" for none.
func (p *places) on(n *corev1.Node) (on string) {
	p.note(n, func(place *nodePlace) { on = place.at(p.names[n.Labels[view.PlaceLabel]]) })
	return on
}

// at returns the configuration given the one of the label.
func (place *nodePlace) at(labelled string) string {
	if place.given && place.on != labelled {
		return place.on
	}
	place.given = false
	return labelled
}

// standing assigns a node with a known set to the configuration that does not depend on other nodes, and
// returns it; "" for none.
func (p *places) standing(n *corev1.Node, shown shownPlaces) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, _ := p.candidate(n, shown)
	on := service.PlaceOf(c, p.several)
	if on != "" {
		p.give(n, on)
	}
	return on
}

// choose assigns a node among all others; "" if no load balancer may have it.
func (p *places) choose(n *corev1.Node, nodes []*corev1.Node, shown shownPlaces) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []service.Node
	for _, other := range nodes {
		if c, ok := p.candidate(other, shown); ok {
			all = append(all, c)
		}
	}
	on := service.PlaceNodes(all, p.several)[n.Name]
	p.give(n, on)
	return on
}

func (p *places) give(n *corev1.Node, on string) {
	place := p.of(n)
	place.given, place.on, place.nowhere = on != p.names[n.Labels[view.PlaceLabel]], on, on == ""
}

// candidate returns a node for placement; false if nothing is known about it. A node placed by an earlier
// process counts as part of that configuration's set until its set is known.
func (p *places) candidate(n *corev1.Node, shown shownPlaces) (service.Node, bool) {
	place := p.of(n)
	c := service.Node{Name: n.Name, Labels: n.Labels, VMSet: place.set, Placed: place.at(p.names[n.Labels[view.PlaceLabel]])}
	if conf, ok := service.ConfigurationOf(c.Placed, p.several); ok && !place.known {
		c.VMSet = conf.PrimaryVMSet
		return c, true
	}
	if c.Placed == "" {
		c.Placed = shown.of(n)
	}
	return c, place.known
}

// of returns the configuration of a node in Azure; "" for none.
func (s shownPlaces) of(n *corev1.Node) string {
	keys := []string{lb.MachineKey(n.Spec.ProviderID)}
	for _, ip := range view.InternalIPs(n) {
		keys = append(keys, ip.String())
	}
	for _, key := range keys {
		if on := s[key]; on != "" {
			return on
		}
	}
	return ""
}

// missing returns the first node by name that lacks the label and is not known to get none, and why; "" if
// none.
func (p *places) missing(nodes []*corev1.Node) (name, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		if p.names[n.Labels[view.PlaceLabel]] != "" || name != "" && n.Name > name {
			continue
		}
		if place := p.of(n); !place.nowhere {
			name, why = n.Name, place.why
		}
	}
	return name, why
}
