// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

var _ services.Gateways = (*Reconciler)(nil)

// gatewayName returns the Gateway of a key in View.Services.
func gatewayName(key string) types.NamespacedName {
	name := cache.NamespacedName(key)
	name.Name, _ = cache.GatewayOf(name.Name)
	return name
}

// PersistRecord implements services.Gateways.
func (r *Reconciler) PersistRecord(ctx context.Context, s servicelb.Service, record servicelb.Record) error {
	name := gatewayName(s.Name)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		gw := &gatewayv1.Gateway{}
		if err := r.cfg.Reader.Get(ctx, name, gw); err != nil {
			return err
		}
		if string(gw.UID) != s.UID || len(record.LoadBalancers) > 0 && gw.DeletionTimestamp != nil && !hasFinalizer(gw) {
			return servicelb.ErrServiceGone // too late: it must not get resources in Azure
		}
		before := gw.DeepCopy()
		switch {
		case len(record.LoadBalancers) == 0:
			controllerutil.RemoveFinalizer(gw, metadata.ServiceFinalizer)
		case gw.DeletionTimestamp == nil:
			controllerutil.AddFinalizer(gw, metadata.ServiceFinalizer)
		}
		services.SetRecord(&gw.ObjectMeta, record)
		return r.cfg.Writer.Patch(ctx, gw, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(k8s.FieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return servicelb.ErrServiceGone
	}
	if err != nil {
		return fmt.Errorf("finalizer of Gateway %s: %w", name, err)
	}
	return nil
}

// Exists implements services.Gateways.
func (r *Reconciler) Exists(ctx context.Context, key, uid string) (bool, error) {
	gw := &gatewayv1.Gateway{}
	err := r.cfg.Reader.Get(ctx, gatewayName(key), gw)
	return err == nil && string(gw.UID) == uid, client.IgnoreNotFound(err)
}

// PatchStatus implements services.Gateways. The status remains in memory; a reconciliation writes it.
func (r *Reconciler) PatchStatus(s *corev1.Service, patch []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := metadata.Key(s.Namespace, s.Name)
	svc := cache.Get[corev1.Service](r.cfg.Gateways, key)
	if svc == nil || svc.UID != s.UID {
		return nil
	}
	before, err := json.Marshal(svc)
	if err != nil {
		return fmt.Errorf("status of Gateway %s: %w", gatewayName(key), err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Service{})
	if err != nil {
		return fmt.Errorf("status of Gateway %s: %w", gatewayName(key), err)
	}
	patched, next := &corev1.Service{}, svc.DeepCopy()
	if err := json.Unmarshal(after, patched); err != nil {
		return fmt.Errorf("status of Gateway %s: %w", gatewayName(key), err)
	}
	next.Status = patched.Status
	if err := r.cfg.Gateways.Update(next); err != nil {
		return fmt.Errorf("status of Gateway %s: %w", gatewayName(key), err)
	}
	r.queue.Add(gatewayName(key))
	return nil
}

// HandleInSync implements services.Gateways. A copy that is not used any more can then be deleted.
func (r *Reconciler) HandleInSync(s *corev1.Service) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := metadata.Key(s.Namespace, s.Name)
	svc := cache.Get[corev1.Service](r.cfg.Gateways, key)
	if svc == nil || svc.UID != s.UID || r.inSync[s.UID] || !reflect.DeepEqual(svc.Spec, s.Spec) {
		return
	}
	r.inSync[s.UID] = true
	r.queue.Add(gatewayName(key))
}

// EventObject implements services.Gateways.
func (r *Reconciler) EventObject(s servicelb.Service) runtime.Object {
	name := gatewayName(s.Name)
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: types.UID(s.UID)}}
}
