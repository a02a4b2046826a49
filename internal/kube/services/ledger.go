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
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/internal/words"
)

// serviceLedger implements servicelb.Ledger.
type serviceLedger struct{ r *Reconciler }

// Record implements servicelb.Ledger.
func (l serviceLedger) Record(ctx context.Context, s servicelb.Service, r servicelb.Record) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh := &corev1.Service{}
		if err := l.r.cfg.API.Reader.Get(ctx, view.NamespacedName(s.Name), fresh); err != nil {
			return err
		}
		if string(fresh.UID) != s.UID || len(r.Places) > 0 && fresh.DeletionTimestamp != nil && !l.r.view.Serving.Held(fresh) {
			return servicelb.ErrGone // too late to keep it: nothing of it may come into Azure
		}
		before := fresh.DeepCopy()
		if len(r.Places) > 0 && fresh.DeletionTimestamp == nil {
			controllerutil.AddFinalizer(fresh, view.ServiceFinalizer)
		}
		if len(r.Places) == 0 {
			l.letGo(fresh)
		}
		annotate(fresh, view.PlaceAnnotation, r.Places)
		annotate(fresh, view.GroupsAnnotation, r.Groups)
		annotateClass(fresh, r.Class)
		return l.r.cfg.API.Writer.Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apiserver.FieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return servicelb.ErrGone
	}
	if err != nil {
		return fmt.Errorf("finalizer of Service %s: %w", s.Name, err)
	}
	return nil
}

// letGo takes off the finalizers that keep a Service until its load balancer is gone.
func (l serviceLedger) letGo(s *corev1.Service) {
	controllerutil.RemoveFinalizer(s, view.ServiceFinalizer)
	if view.OwnershipOf(s).Inherits(l.r.options.Class) {
		controllerutil.RemoveFinalizer(s, view.CleanupFinalizer)
	}
}

// annotateClass writes the record of a class, which may be none; without a record there is none.
func annotateClass(s *corev1.Service, class *string) {
	if class == nil {
		delete(s.Annotations, view.ClassAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, view.ClassAnnotation, *class)
}

// annotate writes a record of names; without any there is none.
func annotate(s *corev1.Service, annotation string, names []string) {
	if len(names) == 0 {
		delete(s.Annotations, annotation)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotation, strings.Join(names, ","))
}

// Publish implements servicelb.Ledger.
func (l serviceLedger) Publish(ctx context.Context, v servicelb.Service, addresses []netip.Addr) error {
	s := l.r.view.ServiceObject(v)
	var ingress []corev1.LoadBalancerIngress
	for _, ip := range addresses {
		ingress = append(ingress, corev1.LoadBalancerIngress{IP: ip.String()})
	}
	same := func(a, b corev1.LoadBalancerIngress) bool { return a.IP == b.IP && a.Hostname == b.Hostname }
	if slices.EqualFunc(s.Status.LoadBalancer.Ingress, ingress, same) {
		return nil
	}
	next := s.DeepCopy()
	next.Status.LoadBalancer.Ingress = ingress
	err := l.r.cfg.API.Status.Patch(ctx, next, client.MergeFrom(s), client.FieldOwner(apiserver.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("status of Service %s: %w", v.Name, err)
	}
	return nil
}

// Contested implements servicelb.Ledger. The patch names our condition alone: those of others, of
// which the informer's copy has none, stay as they are.
func (l serviceLedger) Contested(ctx context.Context, v servicelb.Service, contests []balancer.Contest) error {
	s := l.r.view.ServiceObject(v)
	var texts []string
	for _, one := range contests {
		texts = append(texts, contestText(one, words.MaxMessage/len(contests)))
	}
	why, conditions := strings.Join(texts, ". "), view.OnlyContested(s.Status.Conditions)
	var part any
	switch {
	case why == "" && conditions == nil:
		return nil
	case why == "":
		part = map[string]string{"$patch": "delete", "type": view.ConditionContested}
	default:
		changed := meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: view.ConditionContested, Status: metav1.ConditionTrue, Reason: EventContested, Message: words.Sentence(why, words.MaxMessage),
		})
		if !changed {
			return nil
		}
		part = conditions[0]
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{part}}})
	if err == nil {
		err = l.r.cfg.API.Status.Patch(ctx, s.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, body), client.FieldOwner(apiserver.FieldOwner))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("condition of Service %s: %w", v.Name, err)
	}
	return nil
}

// Served implements servicelb.Ledger.
func (l serviceLedger) Served(s servicelb.Service) {
	name := view.NamespacedName(s.Name)
	for _, p := range l.r.view.PoolsOf(poolupdate.ServiceName{Namespace: name.Namespace, Name: name.Name}) {
		l.r.pools.Queue(client.ObjectKeyFromObject(p))
	}
}

// MakePools implements servicelb.Ledger.
func (l serviceLedger) MakePools(ctx context.Context, s servicelb.Service, on lb.LoadBalancerID, pools []service.Pool) ([]string, error) {
	return poolMaker{l.r}.makePools(ctx, l.r.view.ServiceObject(s), on, pools)
}

// DropPools implements servicelb.Ledger.
func (l serviceLedger) DropPools(ctx context.Context, s servicelb.Service, keep []string, gone []lb.PoolID) error {
	return poolMaker{l.r}.dropPools(ctx, s, keep, gone)
}

// DropNodePools implements servicelb.Ledger.
func (l serviceLedger) DropNodePools(ctx context.Context, id lb.LoadBalancerID) error {
	return poolMaker{l.r}.dropNodePools(ctx, id)
}

// Planned implements servicelb.Ledger.
func (l serviceLedger) Planned(ctx context.Context, s servicelb.Service, text string) error {
	return poolMaker{l.r}.writePlanned(ctx, s.Name, text)
}

// Passes implements servicelb.Ledger.
func (l serviceLedger) Passes(err error) bool { return apiserver.Passes(err) }
