// SPDX-License-Identifier: Apache-2.0

package app

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
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/ownership"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/offline"
	"weir.dev/weir/internal/service"
)

// Cleanup removes what Weir wrote for Services without a class. Azure is not changed. Weir must not
// run at the same time.
type Cleanup struct {
	API client.Client
	// DryRun writes nothing.
	DryRun bool
	// Report reports each step.
	Report func(string)

	// Services, Pools and Nodes count the released objects; Kept those that could not be.
	Services, Pools, Nodes, Skipped int

	keptServices, keptLoadBalancers []string
	// serviceUIDs maps Services with Weir's finalizer to their UIDs.
	serviceUIDs map[string]types.UID
}

// RemoveAll can be repeated after an interruption: Services go last, because they identify the
// BackendPools Weir created.
func (c *Cleanup) RemoveAll(ctx context.Context) error {
	objects, err := offline.ReadObjects(ctx, c.API, false)
	if err != nil {
		return err
	}
	c.serviceUIDs = map[string]types.UID{}
	var leaving []*corev1.Service
	for i := range objects.Services {
		if s := &objects.Services[i]; cache.HasFinalizer(s) && !c.mustKeep(s) {
			leaving = append(leaving, s)
		}
	}
	for i := range objects.Pools {
		if err := c.releasePool(ctx, &objects.Pools[i]); err != nil {
			return err
		}
	}
	for _, s := range leaving {
		if err := c.releaseService(ctx, s); err != nil {
			return err
		}
	}
	for i := range objects.Nodes {
		if err := c.releaseNode(ctx, &objects.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cleanup) mustKeep(s *corev1.Service) bool {
	key := metadata.Key(s.Namespace, s.Name)
	c.serviceUIDs[key] = s.UID
	switch {
	case s.Spec.LoadBalancerClass != nil:
		c.Report("Service " + key + " remains: it has the class " + *s.Spec.LoadBalancerClass + ", which no other controller serves, and which cannot be changed")
	case s.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(s, metadata.CleanupFinalizer):
		c.Skipped++
		c.Report("Service " + key + " remains: it is being deleted, and no other controller would remove its resources from Azure: let Weir finish first")
	default:
		return false
	}
	c.keptServices, c.keptLoadBalancers = append(c.keptServices, key), append(c.keptLoadBalancers, servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation])...)
	return true
}

func (c *Cleanup) releaseService(ctx context.Context, s *corev1.Service) error {
	name := "Service " + metadata.Key(s.Namespace, s.Name)
	if groups := s.Annotations[metadata.LinkGroupsAnnotation]; groups != "" {
		c.Report(fmt.Sprintf("%s: a Private Link Service with its tags in resource group %q remains unchanged", name, groups))
	}
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(s, metadata.ServiceFinalizer)
	for _, record := range []string{metadata.PlaceAnnotation, metadata.GroupsAnnotation, metadata.LinkGroupsAnnotation, metadata.ClassAnnotation, service.WrittenProperties} {
		delete(s.Annotations, record)
	}
	c.Services++
	c.Report(name + ": finalizer and record taken off")
	return c.patchObject(ctx, name, before, s)
}

func (c *Cleanup) releasePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	name := "BackendPool " + metadata.Key(p.Namespace, p.Name)
	if !c.isManaged(p) {
		c.Report(name + " remains: a user created it; no other controller manages its pool")
		return nil
	}
	if c.isNeeded(p) {
		c.Report(name + " remains: a Service that needs it remains")
		return nil
	}
	for _, d := range p.Status.Down {
		c.Report(fmt.Sprintf("%s: address %s of node %s is set to Down in Azure and remains so: %s", name, d.Address, d.Node, d.Reason))
	}
	before := p.DeepCopy()
	controllerutil.RemoveFinalizer(p, v1alpha1.Finalizer)
	c.Pools++
	c.Report(name + ": deleted; pool " + p.Spec.PoolName + " remains unchanged")
	if err := c.patchObject(ctx, name, before, p); err != nil || c.DryRun {
		return err
	}
	if err := c.API.Delete(ctx, p, client.Preconditions{UID: &p.UID}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// isManaged uses the recorded status, or, for versions without it, compares with what Weir created.
func (c *Cleanup) isManaged(p *v1alpha1.BackendPool) bool {
	ref := p.Spec.ServiceRef
	if p.Status.MadeFor != "" || ref == nil {
		return p.Status.MadeFor != ""
	}
	uid, served := c.serviceUIDs[metadata.Key(p.Namespace, ref.Name)]
	return served && p.Status.PoolID != "" && ownership.HasOwner(p, uid) && p.Name == cache.PoolObjectName(ref.Name, p.Spec.LoadBalancer.Name, lb.Family(p.Spec.IPFamily))
}

func (c *Cleanup) isNeeded(p *v1alpha1.BackendPool) bool {
	if ref := p.Spec.ServiceRef; ref != nil {
		return slices.Contains(c.keptServices, metadata.Key(p.Namespace, ref.Name))
	}
	return slices.ContainsFunc(c.keptLoadBalancers, func(place string) bool { return strings.EqualFold(place, p.Spec.LoadBalancer.Name) })
}

func (c *Cleanup) releaseNode(ctx context.Context, n *corev1.Node) error {
	name := "Node " + n.Name
	if _, announced := n.Annotations[metadata.PreemptionAnnotation]; announced {
		c.Report(name + ": an eviction was announced, and Weir tainted it; if the eviction does not happen, remove the taint")
	}
	if _, placed := n.Labels[metadata.PlaceLabel]; !placed || len(c.keptLoadBalancers) > 0 {
		return nil
	}
	before := n.DeepCopy()
	delete(n.Labels, metadata.PlaceLabel)
	c.Nodes++
	c.Report(name + ": label " + metadata.PlaceLabel + " taken off")
	return c.patchObject(ctx, name, before, n)
}

func (c *Cleanup) patchObject(ctx context.Context, name string, before, after client.Object) error {
	if c.DryRun {
		return nil
	}
	err := c.API.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(k8s.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
