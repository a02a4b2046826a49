// SPDX-License-Identifier: Apache-2.0

package leave

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/offline"
	"weir.dev/weir/internal/kube/ownership"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/servicelb"
)

// Leaving removes what Weir wrote for Services without a class. Azure is not changed. Weir must not
// run at the same time.
type Leaving struct {
	API client.Client
	// DryRun writes nothing.
	DryRun bool
	// Say reports each step.
	Say func(string)

	// Services, Pools and Nodes count the released objects; Kept those that could not be.
	Services, Pools, Nodes, Kept int

	stay, stays []string
	// served maps Services with Weir's finalizer to their UIDs.
	served map[string]types.UID
}

// Leave can be repeated after an interruption: Services go last, because they identify the
// BackendPools Weir created.
func (l *Leaving) Leave(ctx context.Context) error {
	objects, err := offline.Read(ctx, l.API, false)
	if err != nil {
		return err
	}
	l.served = map[string]types.UID{}
	var leaving []*corev1.Service
	for i := range objects.Services {
		if s := &objects.Services[i]; view.HasFinalizer(s) && !l.stayed(s) {
			leaving = append(leaving, s)
		}
	}
	for i := range objects.Pools {
		if err := l.pool(ctx, &objects.Pools[i]); err != nil {
			return err
		}
	}
	for _, s := range leaving {
		if err := l.service(ctx, s); err != nil {
			return err
		}
	}
	for i := range objects.Nodes {
		if err := l.node(ctx, &objects.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Leaving) stayed(s *corev1.Service) bool {
	key := view.Key(s.Namespace, s.Name)
	l.served[key] = s.UID
	switch {
	case s.Spec.LoadBalancerClass != nil:
		l.Say("Service " + key + " stays: it has the class " + *s.Spec.LoadBalancerClass + ", which no other controller takes, and which cannot be changed")
	case s.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(s, view.CleanupFinalizer):
		l.Kept++
		l.Say("Service " + key + " stays: it is being deleted, and nobody else would remove from Azure what it has: let Weir finish that first")
	default:
		return false
	}
	l.stay, l.stays = append(l.stay, key), append(l.stays, servicelb.Names(s.Annotations[view.PlaceAnnotation])...)
	return true
}

func (l *Leaving) service(ctx context.Context, s *corev1.Service) error {
	name := "Service " + view.Key(s.Namespace, s.Name)
	if groups := s.Annotations[view.LinkGroupsAnnotation]; groups != "" {
		l.Say(fmt.Sprintf("%s: a Private Link Service whose tags name it, of resource group %q, stays as it is", name, groups))
	}
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(s, view.ServiceFinalizer)
	for _, record := range []string{view.PlaceAnnotation, view.GroupsAnnotation, view.LinkGroupsAnnotation, view.ClassAnnotation} {
		delete(s.Annotations, record)
	}
	l.Services++
	l.Say(name + ": finalizer and record taken off")
	return l.patch(ctx, name, before, s)
}

func (l *Leaving) pool(ctx context.Context, p *v1alpha1.BackendPool) error {
	name := "BackendPool " + view.Key(p.Namespace, p.Name)
	if !l.made(p) {
		l.Say(name + " stays: people made it; no other controller keeps its pool")
		return nil
	}
	if l.needs(p) {
		l.Say(name + " stays: a Service that needs it does")
		return nil
	}
	for _, d := range p.Status.Down {
		l.Say(fmt.Sprintf("%s: address %s of node %s is set Down in Azure and stays so: %s", name, d.Address, d.Node, d.Reason))
	}
	before := p.DeepCopy()
	controllerutil.RemoveFinalizer(p, v1alpha1.Finalizer)
	l.Pools++
	l.Say(name + ": deleted; pool " + p.Spec.PoolName + " stays as it is")
	if err := l.patch(ctx, name, before, p); err != nil || l.DryRun {
		return err
	}
	if err := l.API.Delete(ctx, p, client.Preconditions{UID: &p.UID}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// made uses the recorded status, or, for versions without it, compares with what Weir created.
func (l *Leaving) made(p *v1alpha1.BackendPool) bool {
	ref := p.Spec.ServiceRef
	if p.Status.MadeFor != "" || ref == nil {
		return p.Status.MadeFor != ""
	}
	uid, served := l.served[view.Key(p.Namespace, ref.Name)]
	return served && p.Status.PoolID != "" && ownership.OwnedBy(p, uid) && p.Name == view.PoolObjectName(ref.Name, p.Spec.LoadBalancer.Name, lb.Family(p.Spec.IPFamily))
}

func (l *Leaving) needs(p *v1alpha1.BackendPool) bool {
	if ref := p.Spec.ServiceRef; ref != nil {
		return slices.Contains(l.stay, view.Key(p.Namespace, ref.Name))
	}
	return slices.ContainsFunc(l.stays, func(place string) bool { return strings.EqualFold(place, p.Spec.LoadBalancer.Name) })
}

func (l *Leaving) node(ctx context.Context, n *corev1.Node) error {
	name := "Node " + n.Name
	if _, announced := n.Annotations[view.PreemptionAnnotation]; announced {
		l.Say(name + ": an eviction was announced, and Weir tainted it; if the eviction does not come, nobody takes the taint off")
	}
	if _, placed := n.Labels[view.PlaceLabel]; !placed || len(l.stays) > 0 {
		return nil
	}
	before := n.DeepCopy()
	delete(n.Labels, view.PlaceLabel)
	l.Nodes++
	l.Say(name + ": label " + view.PlaceLabel + " taken off")
	return l.patch(ctx, name, before, n)
}

func (l *Leaving) patch(ctx context.Context, name string, before, after client.Object) error {
	if l.DryRun {
		return nil
	}
	err := l.API.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apiserver.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
