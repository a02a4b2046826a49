// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/service"
)

// serviceStatusStore implements servicelb.Store; its BackendPool methods are in backendpools.go.
type serviceStatusStore struct{ *Reconciler }

// PersistRecord implements servicelb.Store.
func (store serviceStatusStore) PersistRecord(ctx context.Context, s servicelb.Service, r servicelb.Record) error {
	if cache.IsGatewayKey(s.Name) {
		return store.gateways.PersistRecord(ctx, s, r)
	}
	seen := store.cachedService(s)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh := seen
		if seen = nil; fresh == nil { // missing or outdated
			fresh = &corev1.Service{}
			if err := store.cfg.API.Reader.Get(ctx, cache.NamespacedName(s.Name), fresh); err != nil {
				return err
			}
		}
		if string(fresh.UID) != s.UID || len(r.LoadBalancers) > 0 && fresh.DeletionTimestamp != nil && !store.view.Serving.NeedsCleanup(fresh) {
			return servicelb.ErrServiceGone // too late: it must not get resources in Azure
		}
		before := fresh.DeepCopy()
		if len(r.LoadBalancers) > 0 && fresh.DeletionTimestamp == nil {
			controllerutil.AddFinalizer(fresh, metadata.ServiceFinalizer)
		}
		if len(r.LoadBalancers) == 0 {
			store.removeFinalizers(fresh)
		}
		SetRecord(&fresh.ObjectMeta, r)
		return store.cfg.API.Writer.Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(k8s.FieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return servicelb.ErrServiceGone
	}
	if err != nil {
		return fmt.Errorf("finalizer of Service %s: %w", s.Name, err)
	}
	return nil
}

// cachedService returns the cached copy for an optimistic patch of that version. It returns nil if the cache does not
// have all finalizers and records of the Service.
func (store serviceStatusStore) cachedService(v servicelb.Service) *corev1.Service {
	s := store.view.ServiceObject(v)
	if s.ResourceVersion == "" || s.Spec.Type != corev1.ServiceTypeLoadBalancer && !cache.HasFinalizer(s) {
		return nil
	}
	return s.DeepCopy()
}

// removeFinalizers removes the finalizers that keep a Service until its load balancer is deleted.
func (store serviceStatusStore) removeFinalizers(s *corev1.Service) {
	controllerutil.RemoveFinalizer(s, metadata.ServiceFinalizer)
	if cache.OwnershipOf(s).HasAllFinalizers(store.options.Class) {
		controllerutil.RemoveFinalizer(s, metadata.CleanupFinalizer)
	}
}

// SetRecord sets the annotations of a record.
func SetRecord(m *metav1.ObjectMeta, r servicelb.Record) {
	setAnnotation(m, metadata.PlaceAnnotation, joinRecord(r.LoadBalancers))
	setAnnotation(m, metadata.GroupsAnnotation, joinRecord(r.Groups))
	setAnnotation(m, metadata.LinkGroupsAnnotation, joinRecord(r.LinkGroups))
	setAnnotation(m, service.WrittenProperties, joinRecord(r.Properties))
	setAnnotation(m, metadata.ClassAnnotation, r.Class)
}

// setAnnotation sets an annotation, or deletes it if record is nil.
func setAnnotation(m *metav1.ObjectMeta, annotation string, record *string) {
	if record == nil {
		delete(m.Annotations, annotation)
		return
	}
	metav1.SetMetaDataAnnotation(m, annotation, *record)
}

// joinRecord joins names; nil if there are none.
func joinRecord(names []string) *string {
	if len(names) == 0 {
		return nil
	}
	return new(strings.Join(names, ","))
}

// PublishAddresses implements servicelb.Store.
func (store serviceStatusStore) PublishAddresses(ctx context.Context, v servicelb.Service, addresses []netip.Addr) error {
	return store.UpdateConditions(ctx, v, servicelb.StatusUpdate{HasAddresses: true, Addresses: addresses})
}

// ingressOf returns the ingress list for addresses, and whether the status differs.
func ingressOf(s *corev1.Service, addresses []netip.Addr) (ingress []corev1.LoadBalancerIngress, changed bool) {
	for _, ip := range addresses {
		ingress = append(ingress, corev1.LoadBalancerIngress{IP: ip.String(), IPMode: new(corev1.LoadBalancerIPModeVIP)})
	}
	return ingress, !slices.EqualFunc(s.Status.LoadBalancer.Ingress, ingress, sameIngress)
}

// sameIngress compares two entries. A missing mode equals any: API servers before Kubernetes 1.29 drop it.
func sameIngress(a, b corev1.LoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname && (a.IPMode == nil || b.IPMode == nil || *a.IPMode == *b.IPMode)
}

func (store serviceStatusStore) patchStatus(ctx context.Context, subject string, s *corev1.Service, patch client.Patch) error {
	err := store.cfg.API.Status.Patch(ctx, s, patch, client.FieldOwner(k8s.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s of Service %s: %w", subject, metadata.Key(s.Namespace, s.Name), err)
	}
	return nil
}

// UpdateConflicts implements servicelb.Store.
func (store serviceStatusStore) UpdateConflicts(ctx context.Context, v servicelb.Service, conflicts []loadbalancer.Conflict, force bool) error {
	s := store.view.ServiceObject(v)
	var texts []string
	for _, c := range conflicts {
		texts = append(texts, conflictMessage(c, humanize.MaxMessage/len(conflicts)))
	}
	return store.setServiceCondition(ctx, s, metadata.ConditionConflict, metav1.ConditionTrue, EventConflict, strings.Join(texts, ". "), force)
}

// UpdateLink implements servicelb.Store.
func (store serviceStatusStore) UpdateLink(ctx context.Context, v servicelb.Service, state *privatelink.State, force bool) error {
	s := store.view.ServiceObject(v)
	if state == nil {
		return store.setServiceCondition(ctx, s, metadata.ConditionPrivateLink, "", "", "", force)
	}
	status := metav1.ConditionFalse
	if state.IsPublished() {
		status = metav1.ConditionTrue
	}
	return store.setServiceCondition(ctx, s, metadata.ConditionPrivateLink, status, state.Reason, state.Text, force)
}

// UpdateConditions implements servicelb.Store.
func (store serviceStatusStore) UpdateConditions(ctx context.Context, v servicelb.Service, c servicelb.StatusUpdate) error {
	s := store.view.ServiceObject(v)
	status := map[string]any{}
	if ingress, changed := ingressOf(s, c.Addresses); c.HasAddresses && changed {
		status["loadBalancer"] = map[string]any{"ingress": ingress}
	}
	var parts []any
	for _, cond := range c.Conditions {
		status := metav1.ConditionFalse
		if cond.IsTrue() {
			status = metav1.ConditionTrue
		}
		if part := conditionPatch(s, metav1.Condition{Type: cond.Type, Status: status, Reason: cond.Reason, Message: cond.Text, ObservedGeneration: v.Generation}, c.Changed); part != nil {
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		status["conditions"] = parts
	}
	return store.patchFields(ctx, s, "status", status)
}

func (store serviceStatusStore) setServiceCondition(ctx context.Context, s *corev1.Service, kind string, status metav1.ConditionStatus, reason, text string, force bool) error {
	if part := conditionPatch(s, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text}, force); part != nil {
		return store.patchFields(ctx, s, "condition", map[string]any{"conditions": []any{part}})
	}
	return nil
}

// conditionPatch returns the patch entry for a condition, or nil if the cached copy is equal. An empty message
// deletes the condition. Messages that differ only in an Azure request ID are
// equal. If force is set, it returns the entry in any case.
func conditionPatch(s *corev1.Service, want metav1.Condition, force bool) any {
	conditions := cache.FilterConditions(s.Status.Conditions, want.Type)
	if want.Message == "" {
		if conditions == nil && !force {
			return nil
		}
		return map[string]string{"$patch": "delete", "type": want.Type}
	}
	want.Message = humanize.FormatMessage(want.Message, humanize.MaxMessage)
	if cond := meta.FindStatusCondition(conditions, want.Type); cond != nil && humanize.EqualMessages(cond.Message, want.Message) {
		want.Message = cond.Message
	}
	if !meta.SetStatusCondition(&conditions, want) && !force {
		return nil
	}
	return conditions[0]
}

// patchFields patches status fields. The patch lists only Weir's conditions, because the cache has no others.
func (store serviceStatusStore) patchFields(ctx context.Context, s *corev1.Service, subject string, fields map[string]any) error {
	if len(fields) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"status": fields})
	if err != nil {
		return fmt.Errorf("%s of Service %s: %w", subject, metadata.Key(s.Namespace, s.Name), err)
	}
	if _, ok := cache.GatewayOf(s.Name); ok {
		return store.gateways.PatchStatus(s, body)
	}
	return store.patchStatus(ctx, subject, s.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, body))
}

// RequeuePools implements servicelb.Store.
func (store serviceStatusStore) RequeuePools(s servicelb.Service) {
	name := cache.NamespacedName(s.Name)
	for _, p := range store.view.PoolsOf(schedule.ServiceName{Namespace: name.Namespace, Name: name.Name}) {
		store.pools.RequeuePool(client.ObjectKeyFromObject(p))
	}
}

// IsTransient implements servicelb.Store.
func (store serviceStatusStore) IsTransient(err error) bool { return k8s.IsTransient(err) }
