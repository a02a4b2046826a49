// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// EventMembersRetained is the event reason for members retained despite an announced eviction.
const EventMembersRetained = "SpotEvictionsHeldBack"

// Events queues events about objects without blocking.
type Events interface {
	Add(about runtime.Object, kind, reason, message string)
}

type eventRecorder struct {
	view        *cache.Snapshot
	events      Events
	adminStates func(p *v1alpha1.BackendPool, binding backendpool.Binding, r updater.Report, t backendpool.AdminChanges)
}

func (e eventRecorder) OnPool(p *v1alpha1.BackendPool, event backendpool.Event) {
	e.events.Add(p, event.Kind, event.Reason, event.Text)
}

func (e eventRecorder) OnService(name schedule.ServiceName, event backendpool.Event) {
	if s := e.view.Service(name); s != nil {
		e.events.Add(s, event.Kind, event.Reason, event.Text)
	}
}

func (e eventRecorder) RecordRetained(p *v1alpha1.BackendPool, binding backendpool.Binding, set membership.Set) {
	event := backendpool.Event{
		Kind: corev1.EventTypeWarning, Reason: EventMembersRetained,
		Text: humanize.FormatMessage("Pool "+p.Spec.PoolName+": "+backendpool.RetainedMessage(set), humanize.MaxMessage),
	}
	if binding.Service != (schedule.ServiceName{}) {
		e.OnService(binding.Service, event)
	} else if current := e.view.Pool(p.Namespace, p.Name); current != nil {
		e.OnPool(current, event)
	}
}

func (e eventRecorder) AdminStates(p *v1alpha1.BackendPool, binding backendpool.Binding, r updater.Report, t backendpool.AdminChanges) {
	if e.adminStates != nil {
		e.adminStates(p, binding, r, t)
	}
}
