// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/internal/words"
)

// Reasons of the events about the load balancer of a Service. The first five are those of
// Kubernetes' own service controller.
const (
	EventEnsuring          = servicelb.ReasonEnsuring
	EventEnsured           = servicelb.ReasonEnsured
	EventDeleting          = servicelb.ReasonDeleting
	EventDeleted           = servicelb.ReasonDeleted
	EventSyncFailed        = servicelb.ReasonSyncFailed
	EventUnknownAnnotation = servicelb.ReasonUnknownAnnotation // of annotations that have no effect
	EventProbesProxied     = servicelb.ReasonProbesProxied     // of HTTP probes that fail because of another Service on the load balancer
	EventPartial           = servicelb.ReasonPartial           // of what is wrong with a part, without which the Service is served
	EventNoEffect          = servicelb.ReasonNoEffect          // of restrictions that keep nobody out
	EventNotGuarded        = servicelb.ReasonNotGuarded        // the security group does not do what it should
	EventRemovalHeld       = servicelb.ReasonRemovalHeld       // of addresses that are not taken away before a person says so
	EventKept              = servicelb.ReasonKept              // it is not served any more, and keeps what it has
	EventPoolKept          = servicelb.ReasonPoolKept          // of a pool that stays for the addresses of others in it
	EventPoolEmptying      = servicelb.ReasonPoolEmptying      // of a load balancer that goes when network interfaces have left its pools
	EventDeferred          = servicelb.ReasonDeferred          // its next write waits
	EventContested         = servicelb.ReasonContested         // somebody else keeps undoing what Weir writes for it
	EventDryRun            = servicelb.ReasonDryRun            // what would change
)

// EventInvalidBound is the reason of events about a Namespace whose annotation sets no valid bound.
const EventInvalidBound = "InvalidBound"

// serviceEvents implements servicelb.Reporter.
type serviceEvents struct{ r *Reconciler }

// Tell implements servicelb.Reporter.
func (e serviceEvents) Tell(s servicelb.Service, event servicelb.Event) {
	kind, text := corev1.EventTypeNormal, event.Text
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	if event.Err != nil {
		text += words.OfError(event.Err, time.Now())
	}
	if event.Contest != nil {
		text = contestText(*event.Contest, words.MaxMessage/event.Of)
	}
	e.r.cfg.Events.Add(e.r.view.ServiceObject(s), kind, event.Reason, words.Sentence(text, words.MaxMessage))
}

// contestText says in at most limit bytes what is undone, and what Weir does about it.
func contestText(c balancer.Contest, limit int) string {
	what := fmt.Sprintf(" (%s). Somebody else keeps undoing this after Weir has written it. ", c.In)
	what += "Weir has written it again since, and looks whether it stays"
	if !c.Until.IsZero() {
		what = fmt.Sprintf(" (%s). Somebody else keeps undoing this after Weir has written it. Weir leaves it so until %s, unless the Service changes or its annotation %s does",
			c.In, words.Stamp(c.Until), view.WriteAgainAnnotation)
	}
	return words.Sentence(strings.Join(c.Undone, "; "), max(limit-len(what), words.MaxMessage/8)) + what
}
