// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
)

// Event reasons for load balancers of Services. The first five are those of the Kubernetes service
// controller.
const (
	EventEnsuring          = servicelb.ReasonEnsuring
	EventEnsured           = servicelb.ReasonEnsured
	EventDeleting          = servicelb.ReasonDeleting
	EventDeleted           = servicelb.ReasonDeleted
	EventSyncFailed        = servicelb.ReasonSyncFailed
	EventUnknownAnnotation = servicelb.ReasonUnknownAnnotation // annotations without effect
	EventProbesProxied     = servicelb.ReasonProbesProxied     // HTTP probes fail because of another Service on the load balancer
	EventPartial           = servicelb.ReasonPartial           // errors in a part of the Service, which is served without it
	EventNoEffect          = servicelb.ReasonNoEffect          // restrictions without effect
	EventNotGuarded        = servicelb.ReasonNotEnforced       // the security group does not have the intended effect
	EventRemovalBlocked    = servicelb.ReasonRemovalBlocked    // removal of addresses needs the user's approval
	EventRetained          = servicelb.ReasonRetained          // no longer served; resources are retained
	EventPoolRetained      = servicelb.ReasonPoolRetained      // the pool is retained because of foreign addresses
	EventPoolEmptying      = servicelb.ReasonPoolEmptying      // the load balancer is deleted once network interfaces have left its pools
	EventDeferred          = servicelb.ReasonDeferred          // the next write waits
	EventConflict          = servicelb.ReasonConflict          // another controller keeps undoing Weir's writes
	EventDryRun            = servicelb.ReasonDryRun            // planned changes
)

// EventInvalidBound is the event reason for a Namespace with an invalid limit annotation.
const EventInvalidBound = "InvalidBound"

// serviceEvents implements servicelb.EventRecorder.
type serviceEvents struct{ r *Reconciler }

// RecordEvent implements servicelb.EventRecorder.
func (e serviceEvents) RecordEvent(s servicelb.Service, event servicelb.Event) {
	kind, text := corev1.EventTypeNormal, event.Text
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	if event.Err != nil {
		text += humanize.FormatError(event.Err, time.Now()) + failureAdvice(s, event.Err)
	}
	if event.Conflict != nil {
		text = conflictMessage(*event.Conflict, humanize.MaxMessage/event.Of)
	}
	var about runtime.Object = e.r.view.ServiceObject(s)
	if cache.IsGatewayKey(s.Name) {
		about = e.r.gateways.EventObject(s)
	}
	e.r.cfg.Events.Add(about, kind, event.Reason, humanize.FormatMessage(text, humanize.MaxMessage))
}

// failureAdvice names the command with the fix of an error that does not resolve by itself.
func failureAdvice(s servicelb.Service, err error) string {
	if !servicelb.IsTerminal(err) {
		return ""
	}
	namespace, name, _ := strings.Cut(s.Name, "/")
	kind := "service"
	if gateway, ok := cache.GatewayOf(name); ok {
		kind, name = "gateway", gateway
	}
	return fmt.Sprintf(". To see what to do: weir explain %s %s -n %s", kind, name, namespace)
}

// conflictMessage describes the undone changes and Weir's reaction, in at most limit bytes.
func conflictMessage(c loadbalancer.Conflict, limit int) string {
	text := fmt.Sprintf(" (%s). Another client keeps reverting this after Weir has written it. ", c.Resource)
	text += "Weir has written it again since, and checks whether it remains"
	if !c.Until.IsZero() {
		text = fmt.Sprintf(" (%s). Another client keeps reverting this after Weir has written it. Weir leaves it so until %s, unless the Service changes or its annotation %s does",
			c.Resource, humanize.FormatTime(c.Until), metadata.WriteAgainAnnotation)
	}
	return humanize.FormatMessage(strings.Join(c.Reverted, "; "), max(limit-len(text), humanize.MaxMessage/8)) + text
}
