// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldManagers tracks field ownership separately for the main resource and its status.
type fieldManagers struct {
	once         sync.Once
	fromApply    bool
	main, status *managedfields.FieldManager
}

var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme) })

func (m *fieldManagers) managerFor(k *resourceKind, subresource string) *managedfields.FieldManager {
	m.once.Do(func() {
		m.main = newManager(k, "", "status")
		if k.status {
			reset := []string{"spec"}
			if k.crd != nil {
				reset = []string{"spec", "metadata"}
			}
			m.status = newManager(k, "status", reset...)
		}
	})
	if subresource == "status" {
		return m.status
	}
	return m.main
}

func newManager(k *resourceKind, subresource string, reset ...string) *managedfields.FieldManager {
	paths := make([]fieldpath.Path, 0, len(reset))
	for _, name := range reset {
		paths = append(paths, fieldpath.MakePathOrDie(name))
	}
	gv := k.gvk.GroupVersion()
	var filter map[fieldpath.APIVersion]fieldpath.Filter
	if k.status {
		filter = map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(gv.String()): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(paths...))}
	}
	var m *managedfields.FieldManager
	var err error
	if k.crd != nil {
		m, err = managedfields.NewDefaultCRDFieldManager(k.crd.types, identityConverter{}, objectDefaulter{k}, objectCreator{k}, k.gvk, gv, subresource, filter)
	} else {
		m, err = managedfields.NewDefaultFieldManager(builtInTypes(), scheme, objectDefaulter{k}, scheme, k.gvk, gv, subresource, filter)
	}
	if err != nil {
		panic(fmt.Sprintf("field manager of %s: %v", k.gvk, err)) // only without a type converter
	}
	return m
}

func (m *fieldManagers) updateOwnership(k *resourceKind, live, next object, r *request) object {
	if m.fromApply && len(live.GetManagedFields()) == 0 {
		next.SetManagedFields(nil)
		return next
	}
	return m.managerFor(k, r.subresource).UpdateNoErrors(live, next, r.fieldManager()).(object)
}

func (m *fieldManagers) applyPatch(k *resourceKind, live object, patch *unstructured.Unstructured, r *request) (object, error) {
	if gvk := patch.GroupVersionKind(); gvk != k.gvk {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("apply is for %s, and the patch for %s", k.gvk, gvk))
	}
	o, err := m.managerFor(k, r.subresource).Apply(live, patch, r.query.Get("fieldManager"), r.query.Get("force") == "true")
	if err != nil {
		if _, hasStatus := errors.AsType[*apierrors.StatusError](err); hasStatus {
			return nil, err
		}
		return nil, internalError(err.Error())
	}
	next := o.(object)
	next.GetObjectKind().SetGroupVersionKind(k.gvk)
	return next, nil
}

// objectDefaulter implements runtime.ObjectDefaulter.
type objectDefaulter struct{ k *resourceKind }

// Default implements runtime.ObjectDefaulter.
func (d objectDefaulter) Default(o runtime.Object) {
	if d.k.setDefaults != nil {
		d.k.setDefaults(o.(object))
	}
}

// objectCreator implements runtime.ObjectCreater for a custom resource.
type objectCreator struct{ k *resourceKind }

// New implements runtime.ObjectCreater.
func (c objectCreator) New(schema.GroupVersionKind) (runtime.Object, error) {
	return c.k.newObject(), nil
}

// identityConverter: custom resources have one version.
type identityConverter struct{}

// Convert implements runtime.ObjectConvertor.
func (identityConverter) Convert(_, _, _ any) error {
	return apierrors.NewInternalError(fmt.Errorf("custom resources have one version"))
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (identityConverter) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (identityConverter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
