// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/servicelb"
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
	EventNoEffect          = servicelb.ReasonNoEffect          // of restrictions that keep nobody out
	EventNotGuarded        = servicelb.ReasonNotGuarded        // the security group does not do what it should
	EventRemovalHeld       = servicelb.ReasonRemovalHeld       // of addresses that are not taken away before a person says so
	EventKept              = servicelb.ReasonKept              // it is not served any more, and keeps what it has
	EventPoolKept          = servicelb.ReasonPoolKept          // of a pool that stays for the addresses of others in it
	EventContested         = servicelb.ReasonContested         // somebody else keeps undoing what Weir writes for it
	EventDryRun            = servicelb.ReasonDryRun            // what would change
)

// serviceEvents implements servicelb.Reporter.
type serviceEvents struct{ c *Cluster }

// Tell implements servicelb.Reporter.
func (r serviceEvents) Tell(s servicelb.Service, e servicelb.Event) {
	kind, text := corev1.EventTypeNormal, e.Text
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if e.Err != nil {
		text += textOf(e.Err)
	}
	if e.Contest != nil {
		text = contestText(*e.Contest, maxMessage/e.Of)
	}
	r.c.events.add(r.c.serviceObject(s), kind, e.Reason, sentence(text, maxMessage))
}

// textOf is an error in words, with Azure's code where there is one.
func textOf(err error) string {
	text := strings.TrimRight(sentence(err.Error(), maxMessage-200), ". ")
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return text
	}
	if code := sentence(f.Code, maxCode); code != "" && !strings.Contains(text, code) {
		text = code + ": " + text
	}
	if f.RetryAt.After(time.Now()) {
		text += "; another try follows at " + stamp(f.RetryAt)
	}
	return text
}

// contestText says in at most limit bytes what is undone, and what Weir does about it.
func contestText(c balancer.Contest, limit int) string {
	what := fmt.Sprintf(" (%s). Somebody else keeps undoing this after Weir has written it. ", c.In)
	what += "Weir has written it again since, and looks whether it stays"
	if !c.Until.IsZero() {
		what = fmt.Sprintf(" (%s). Somebody else keeps undoing this after Weir has written it. Weir leaves it so until %s, unless the Service changes or its annotation %s does",
			c.In, stamp(c.Until), WriteAgainAnnotation)
	}
	return sentence(strings.Join(c.Undone, "; "), max(limit-len(what), maxMessage/8)) + what
}
