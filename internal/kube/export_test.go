// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/events"
	"weir.dev/weir/internal/kube/nodes"
	"weir.dev/weir/internal/kube/pools"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/poolschedule"
)

// ErrGone is what ApplyStatus returns for a BackendPool that is not there.
var ErrGone = backendpool.ErrGone

// ApplyStatus writes a status to a real API server that showed this version last.
func ApplyStatus(ctx context.Context, api client.Client, ref poolschedule.Ref, version string, status *v1alpha1.BackendPoolStatus) error {
	_, _, err := backendpool.NewStatuses(pools.API{Reader: api, Status: api.Status(), Writer: api}).Apply(ctx, ref, version, status, nil)
	return err
}

// Preempt judges an event over a real API server.
func Preempt(ctx context.Context, reader client.Reader, writer client.Writer, e *corev1.Event) error {
	log := slog.New(slog.DiscardHandler)
	evictions := &nodes.Evictions{Reader: reader, Writer: writer, Events: events.New(view.Scheme(), nil, log), Log: log}
	return evictions.Taint(ctx, e)
}

// Unread are the objects of a text that has one, of namespace default, which was not looked at.
func Unread(text string) Objects {
	doc, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return Objects{origins: []origin{{place: "f", namespace: "default", doc: doc}}}
}

// Preemptions are the events that are held in memory.
func (c *Cluster) Preemptions() []*corev1.Event { return c.evictions.Held() }
