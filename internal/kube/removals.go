// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
)

// AllowRemovalAnnotation on a Service lets its own addresses be taken away, however many others
// would lose theirs.
const AllowRemovalAnnotation = "weir.dev/allow-removal"

// EventRemovalHeld is the reason of the event that tells of addresses that are not taken away
// before a person says so.
const EventRemovalHeld = "LoadBalancerRemovalHeld"

// looksAgainHeld is how often a Service that waits for a person is asked for again: what would
// have taken its addresses away may be mended.
const looksAgainHeld = time.Minute

// spare is what is known of the addresses that a Service would lose.
type spare struct {
	// losing are these; nil if it would lose none.
	losing []netip.Addr
	// wish is what it wanted when that was found out, and again when it is asked for anew.
	wish  *service.Spec
	again time.Time
}

// spares reports whether a request has to spare addresses: no person has asked to give them up.
// Somebody who deletes a Service, or changes its type or class, has. The caller holds the claim.
func (c *Cluster) spares(s *corev1.Service, cl *claim, wish *service.Spec) bool {
	switch {
	case c.balancing.AllowRemoval, allowsRemoval(s):
		return false
	case wish == nil:
		return cl.ghost && !cl.deleting // it went without a word
	}
	return true
}

func allowsRemoval(s *corev1.Service) bool {
	return strings.EqualFold(strings.TrimSpace(s.Annotations[AllowRemovalAnnotation]), "true")
}

// sparing reports whether a request takes no address away, and whether nothing is asked for
// now. The caller holds the claim.
func (c *Cluster) sparing(ctx context.Context, s *corev1.Service, cl *claim, wish *service.Spec, now time.Time) (spare, waits bool) {
	name := key(s.Namespace, s.Name)
	if !c.spares(s, cl, wish) {
		c.spared(name, cl)
		return false, false
	}
	if cl.spare.losing == nil && wish == nil {
		c.loses(name, cl, nil, shownBy(s), now)
	}
	if cl.spare.losing == nil {
		return true, false
	}
	v := c.removals.Judge(name, c.addressed(), c.allLookedAt(), now)
	switch {
	case v.May:
		return false, false
	case !v.Again.IsZero():
		cl.spare.again = v.Again
		return true, true
	}
	c.tellHeld(ctx, s, cl, v.Losing)
	if wish == nil { // nobody can mend that but by bringing it back
		cl.spare.again = now.Add(looksAgainHeld)
	}
	return true, now.Before(cl.spare.again) && reflect.DeepEqual(wish, cl.spare.wish)
}

// loses notes that a Service would lose addresses. The caller holds the claim.
func (c *Cluster) loses(name string, cl *claim, wish *service.Spec, addresses []netip.Addr, now time.Time) {
	if addresses == nil {
		addresses = []netip.Addr{}
	}
	cl.spare = spare{losing: addresses, wish: wish, again: now.Add(looksAgainHeld)}
	c.removals.Loses(name, now)
}

// spared notes that a Service loses nothing, or that a person asked for it.
func (c *Cluster) spared(name string, cl *claim) {
	if cl.trouble == stateHeld {
		cl.trouble, cl.told = "", ""
	}
	cl.spare = spare{}
	c.removals.Stays(name)
}

// heldBack takes note of a request that ended because it would have taken addresses away, and
// reports whether it did. The caller holds the claim.
func (c *Cluster) heldBack(cl *claim, r balancer.Result, now time.Time) bool {
	held, ok := errors.AsType[*balancer.RemovalError](r.Err)
	if ok {
		cl.result, cl.level = nil, nil // a move by labels has the wish that was level
		c.loses(r.Service, cl, r.Desired, held.Addresses, now)
	}
	return ok
}

// tellHeld says once that a person is waited for. The caller holds the claim.
func (c *Cluster) tellHeld(ctx context.Context, s *corev1.Service, cl *claim, losing int) {
	if cl.trouble == stateHeld {
		return
	}
	texts := make([]string, len(cl.spare.losing))
	for i, a := range cl.spare.losing {
		texts[i] = a.String()
	}
	what := strings.Join(texts, ", ")
	cl.trouble, cl.told = stateHeld, what
	c.opts.Log.WarnContext(ctx, "addresses are not taken away before a person says so: annotate the Service with "+AllowRemovalAnnotation+"=true, or start with --allow-removal",
		"service", key(s.Namespace, s.Name), "addresses", what, "losing", losing, "of", c.addressed())
	if !cl.ghost {
		c.events.add(s, corev1.EventTypeWarning, EventRemovalHeld, sentence(fmt.Sprintf(
			"It would lose %s, with other Services that would lose theirs: %d of %d, and nobody has asked for it. Nothing more of it is changed until its annotation %s is \"true\", the controller is started with --allow-removal, or what takes them away is mended",
			what, losing, c.addressed(), AllowRemovalAnnotation), maxMessage))
	}
}

// addressed counts the Services that have an address of Weir's, those included that are gone
// without a word.
func (c *Cluster) addressed() int {
	names := map[types.NamespacedName]bool{}
	for _, s := range list[corev1.Service](c.snap.services, servicesBalanced, "") {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			names[client.ObjectKeyFromObject(s)] = true
		}
	}
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	for name, cl := range c.claims.all {
		if cl.addressed.Load() {
			names[name] = true
		}
	}
	return len(names)
}

// allLookedAt reports whether it is known of every Service that shows an address what becomes of
// it: it was looked at, and asked for if it had to be.
func (c *Cluster) allLookedAt() bool {
	for _, s := range list[corev1.Service](c.snap.services, servicesBalanced, "") {
		if cl := c.claims.known(client.ObjectKeyFromObject(s)); len(s.Status.LoadBalancer.Ingress) > 0 && (cl == nil || !cl.looked.Load()) {
			return false
		}
	}
	return true
}
