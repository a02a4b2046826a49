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

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/internal/words"
)

// serviceLedger implements servicelb.Ledger; its BackendPool methods are in backendpools.go.
type serviceLedger struct{ *Reconciler }

// Record implements servicelb.Ledger.
func (l serviceLedger) Record(ctx context.Context, s servicelb.Service, r servicelb.Record) error {
	seen := l.seen(s)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh := seen
		if seen = nil; fresh == nil { // missing or outdated
			fresh = &corev1.Service{}
			if err := l.cfg.API.Reader.Get(ctx, view.NamespacedName(s.Name), fresh); err != nil {
				return err
			}
		}
		if string(fresh.UID) != s.UID || len(r.Places) > 0 && fresh.DeletionTimestamp != nil && !l.view.Serving.Held(fresh) {
			return servicelb.ErrGone // too late: it must not get resources in Azure
		}
		before := fresh.DeepCopy()
		if len(r.Places) > 0 && fresh.DeletionTimestamp == nil {
			controllerutil.AddFinalizer(fresh, view.ServiceFinalizer)
		}
		if len(r.Places) == 0 {
			l.letGo(fresh)
		}
		annotate(fresh, view.PlaceAnnotation, recordOf(r.Places))
		annotate(fresh, view.GroupsAnnotation, recordOf(r.Groups))
		annotate(fresh, view.LinkGroupsAnnotation, recordOf(r.LinkGroups))
		annotate(fresh, view.ClassAnnotation, r.Class)
		return l.cfg.API.Writer.Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apiserver.FieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return servicelb.ErrGone
	}
	if err != nil {
		return fmt.Errorf("finalizer of Service %s: %w", s.Name, err)
	}
	return nil
}

// seen returns the cached copy for an optimistic patch of that version. It returns nil if the cache does not
// have all finalizers and records of the Service.
func (l serviceLedger) seen(v servicelb.Service) *corev1.Service {
	s := l.view.ServiceObject(v)
	if s.ResourceVersion == "" || s.Spec.Type != corev1.ServiceTypeLoadBalancer && !view.HasFinalizer(s) {
		return nil
	}
	return s.DeepCopy()
}

// letGo removes the finalizers that keep a Service until its load balancer is deleted.
func (l serviceLedger) letGo(s *corev1.Service) {
	controllerutil.RemoveFinalizer(s, view.ServiceFinalizer)
	if view.OwnershipOf(s).Inherits(l.options.Class) {
		controllerutil.RemoveFinalizer(s, view.CleanupFinalizer)
	}
}

// annotate sets an annotation, or deletes it if record is nil.
func annotate(s *corev1.Service, annotation string, record *string) {
	if record == nil {
		delete(s.Annotations, annotation)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotation, *record)
}

// recordOf joins names; nil if there are none.
func recordOf(names []string) *string {
	if len(names) == 0 {
		return nil
	}
	return new(strings.Join(names, ","))
}

// Publish implements servicelb.Ledger.
func (l serviceLedger) Publish(ctx context.Context, v servicelb.Service, addresses []netip.Addr) error {
	return l.Conclude(ctx, v, servicelb.Conclusion{Shows: true, Addresses: addresses})
}

// shownBy returns the ingress list for addresses, and whether the status differs.
func shownBy(s *corev1.Service, addresses []netip.Addr) (ingress []corev1.LoadBalancerIngress, news bool) {
	for _, ip := range addresses {
		ingress = append(ingress, corev1.LoadBalancerIngress{IP: ip.String()})
	}
	return ingress, !slices.EqualFunc(s.Status.LoadBalancer.Ingress, ingress, sameIngress)
}

func sameIngress(a, b corev1.LoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname
}

func (l serviceLedger) patchStatus(ctx context.Context, what string, s *corev1.Service, patch client.Patch) error {
	err := l.cfg.API.Status.Patch(ctx, s, patch, client.FieldOwner(apiserver.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s of Service %s: %w", what, view.Key(s.Namespace, s.Name), err)
	}
	return nil
}

// Contested implements servicelb.Ledger.
func (l serviceLedger) Contested(ctx context.Context, v servicelb.Service, contests []balancer.Contest, anew bool) error {
	s := l.view.ServiceObject(v)
	var texts []string
	for _, one := range contests {
		texts = append(texts, contestText(one, words.MaxMessage/len(contests)))
	}
	return l.condition(ctx, s, view.ConditionContested, metav1.ConditionTrue, EventContested, strings.Join(texts, ". "), anew)
}

// Linked implements servicelb.Ledger.
func (l serviceLedger) Linked(ctx context.Context, v servicelb.Service, state *privatelinkround.State, anew bool) error {
	s := l.view.ServiceObject(v)
	if state == nil {
		return l.condition(ctx, s, view.ConditionPrivateLink, "", "", "", anew)
	}
	is := metav1.ConditionFalse
	if state.Publishes() {
		is = metav1.ConditionTrue
	}
	return l.condition(ctx, s, view.ConditionPrivateLink, is, state.Reason, state.Text, anew)
}

// Conclude implements servicelb.Ledger.
func (l serviceLedger) Conclude(ctx context.Context, v servicelb.Service, c servicelb.Conclusion) error {
	s := l.view.ServiceObject(v)
	status := map[string]any{}
	if ingress, news := shownBy(s, c.Addresses); c.Shows && news {
		status["loadBalancer"] = map[string]any{"ingress": ingress}
	}
	var parts []any
	for _, one := range c.Verdicts {
		is := metav1.ConditionFalse
		if one.Holds() {
			is = metav1.ConditionTrue
		}
		if part := changed(s, metav1.Condition{Type: one.Type, Status: is, Reason: one.Reason, Message: one.Text, ObservedGeneration: v.Generation}, c.Anew); part != nil {
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		status["conditions"] = parts
	}
	return l.patchFields(ctx, s, "status", status)
}

func (l serviceLedger) condition(ctx context.Context, s *corev1.Service, kind string, is metav1.ConditionStatus, reason, text string, anew bool) error {
	if part := changed(s, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: text}, anew); part != nil {
		return l.patchFields(ctx, s, "condition", map[string]any{"conditions": []any{part}})
	}
	return nil
}

// changed returns the patch entry for a condition, or nil if the cached copy is equal. An empty message
// deletes the condition. Messages that differ only in an Azure request ID are equal. The anew flag forces the write.
func changed(s *corev1.Service, want metav1.Condition, anew bool) any {
	conditions := view.Own(s.Status.Conditions, want.Type)
	if want.Message == "" {
		if conditions == nil && !anew {
			return nil
		}
		return map[string]string{"$patch": "delete", "type": want.Type}
	}
	want.Message = words.Sentence(want.Message, words.MaxMessage)
	if is := meta.FindStatusCondition(conditions, want.Type); is != nil && words.Same(is.Message, want.Message) {
		want.Message = is.Message
	}
	if !meta.SetStatusCondition(&conditions, want) && !anew {
		return nil
	}
	return conditions[0]
}

// patchFields patches status fields. The patch lists only Weir's conditions, because the cache has no others.
func (l serviceLedger) patchFields(ctx context.Context, s *corev1.Service, what string, fields map[string]any) error {
	if len(fields) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"status": fields})
	if err != nil {
		return fmt.Errorf("%s of Service %s: %w", what, view.Key(s.Namespace, s.Name), err)
	}
	return l.patchStatus(ctx, what, s.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, body))
}

// Served implements servicelb.Ledger.
func (l serviceLedger) Served(s servicelb.Service) {
	name := view.NamespacedName(s.Name)
	for _, p := range l.view.PoolsOf(poolschedule.ServiceName{Namespace: name.Namespace, Name: name.Name}) {
		l.pools.Queue(client.ObjectKeyFromObject(p))
	}
}

// Passes implements servicelb.Ledger.
func (l serviceLedger) Passes(err error) bool { return apiserver.Passes(err) }
