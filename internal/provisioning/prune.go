// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// objectID identifies an object without version and namespace.
type objectID struct {
	kind schema.GroupKind
	name string
}

type objectSet map[objectID][]string

func (o objectSet) contains(kind schema.GroupKind, key client.ObjectKey) bool {
	return slices.Contains(o[objectID{kind, key.Name}], key.Namespace)
}

func (r *run) recordObjects(step string, objects []object) error {
	if r.objectsByStep == nil {
		r.objectsByStep, r.fromSecret = map[string]objectSet{}, map[objectID]bool{}
	}
	recorded := objectSet{}
	for _, o := range objects {
		id := objectID{o.gvk.GroupKind(), o.name}
		// The namespace is empty if the kind is unknown so far, or cluster-scoped.
		recorded[id] = append(recorded[id], "", cmp.Or(o.namespace, o.defaultNamespace, r.target.namespace))
		r.fromSecret[id] = r.fromSecret[id] || o.secret
	}
	if r.objectCount += len(objects); r.objectCount > maxProvisionObjects {
		return newInvalidError("with it the steps have %d objects, and at most %d: make several Provisions of it", r.objectCount, maxProvisionObjects)
	}
	r.objectsByStep[step] = recorded
	return nil
}

func (r *run) isDesired(kind schema.GroupKind, key client.ObjectKey) bool {
	for _, of := range r.objectsByStep {
		if of.contains(kind, key) {
			return true
		}
	}
	return false
}

func canPrune(step *v1alpha1.ProvisionStep) bool {
	return step.Manifests != nil && step.Manifests.Prune || step.Helm != nil && step.Helm.Prune
}

// pruneObjects deletes objects that no step contains anymore and Weir still manages. It runs last, because
// an object may have moved between steps.
func (r *run) pruneObjects(ctx context.Context) (string, error) {
	for i := range r.p.Spec.Steps {
		step := &r.p.Spec.Steps[i]
		if !canPrune(step) {
			continue
		}
		for _, id := range r.stepStatus(step.Name).Inventory {
			kind, key, err := parseID(id)
			if err == nil && !r.isDesired(kind, key) {
				err = r.pruneObject(ctx, id, kind, key)
			}
			if err != nil {
				return step.Name, fmt.Errorf("%s: %w", id, err)
			}
		}
	}
	return "", nil
}

func (r *run) trimInventory(s *v1alpha1.ProvisionStatus) {
	for i := range s.Steps {
		for _, step := range r.p.Spec.Steps {
			if step.Name != s.Steps[i].Name || !canPrune(&step) {
				continue
			}
			s.Steps[i].Inventory = slices.DeleteFunc(s.Steps[i].Inventory, func(id string) bool {
				kind, key, err := parseID(id)
				return err == nil && !r.objectsByStep[step.Name].contains(kind, key)
			})
		}
	}
}

func (r *run) pruneObject(ctx context.Context, id string, kind schema.GroupKind, key client.ObjectKey) error {
	mapping, err := r.target.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; namespaced != (key.Namespace != "") {
		return nil // recorded before its scope was known, so it was never applied
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.target.Get(ctx, key, obj); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !slices.ContainsFunc(obj.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == fieldManager }) {
		r.logf("%s remains: it has another owner now", id)
		return nil
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err = r.target.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.logf("deleted %s, which is not wanted any more", id)
	return nil
}
