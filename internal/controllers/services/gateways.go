// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
)

// Gateways writes what concerns a Gateway, which is a Service here; see cache.Snapshot.AddGateways.
type Gateways interface {
	// PersistRecord is that of servicelb.StatusStore.
	PersistRecord(ctx context.Context, s servicelb.Service, r servicelb.Record) error
	// Exists is that of servicelb.Cluster.
	Exists(ctx context.Context, name, uid string) (bool, error)
	// PatchStatus applies a strategic merge patch to the status of a Gateway's Service.
	PatchStatus(s *corev1.Service, patch []byte) error
	EventObject(s servicelb.Service) runtime.Object
	// HandleInSync handles that Azure has what a Gateway's Service wants, and no request is running.
	HandleInSync(s *corev1.Service)
	// AwaitLoaded waits for the first read of all Gateways, for a limited time. IsLoaded reports whether they are read.
	AwaitLoaded(ctx context.Context)
	IsLoaded() bool
}

// SetGateways enables Gateways. Call it before Setup.
func (r *Reconciler) SetGateways(g Gateways) { r.gateways = g }

func (r *Reconciler) awaitGateways(ctx context.Context) {
	if r.gateways != nil {
		r.gateways.AwaitLoaded(ctx)
	}
}

// RequeueService requests a reconciliation of a Service or Gateway.
func (r *Reconciler) RequeueService(key string) { r.queue.Add(cache.NamespacedName(key)) }

// RequeueServices requests a reconciliation of each Service or Gateway.
func (r *Reconciler) RequeueServices(keys []string) {
	for _, key := range keys {
		r.RequeueService(key)
	}
}
