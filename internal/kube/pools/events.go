// SPDX-License-Identifier: Apache-2.0

package pools

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/words"
)

// EventMembersRetained is the event reason for members retained despite an announced eviction.
const EventMembersRetained = "SpotEvictionsHeldBack"

// Events queues events about objects without blocking.
type Events interface {
	Add(about runtime.Object, kind, reason, message string)
}

type eventRecorder struct {
	view        *view.Snapshot
	events      Events
	adminStates func(p *v1alpha1.BackendPool, is backendpool.Binding, r poolupdate.Report, t backendpool.AdminChanges)
}

func (e eventRecorder) OnPool(p *v1alpha1.BackendPool, event backendpool.Event) {
	e.events.Add(p, event.Kind, event.Reason, event.Text)
}

func (e eventRecorder) OnService(name poolschedule.ServiceName, event backendpool.Event) {
	if s := e.view.Service(name); s != nil {
		e.events.Add(s, event.Kind, event.Reason, event.Text)
	}
}

func (e eventRecorder) RecordRetained(p *v1alpha1.BackendPool, is backendpool.Binding, set membership.Set) {
	event := backendpool.Event{
		Kind: corev1.EventTypeWarning, Reason: EventMembersRetained,
		Text: words.FormatMessage("Pool "+p.Spec.PoolName+": "+members.RetainedMessage(set), words.MaxMessage),
	}
	if is.Service != (poolschedule.ServiceName{}) {
		e.OnService(is.Service, event)
	} else if now := e.view.Pool(p.Namespace, p.Name); now != nil {
		e.OnPool(now, event)
	}
}

func (e eventRecorder) AdminStates(p *v1alpha1.BackendPool, is backendpool.Binding, r poolupdate.Report, t backendpool.AdminChanges) {
	if e.adminStates != nil {
		e.adminStates(p, is, r, t)
	}
}
