// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

func (s *Server) createObject(r *request, next object) (object, error) {
	k := r.kind
	if err := s.setNamespace(r, next); err != nil {
		return nil, err
	}
	if next.GetResourceVersion() != "" {
		return nil, internalError("resourceVersion should not be set on objects to be created")
	}
	if r.verb != verbApply {
		next = k.managers.updateOwnership(k, k.newObject(), next, r)
	}
	return s.insertObject(r, next)
}

// internalError returns an error without a reason, as the API server does here.
func internalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}

func (s *Server) insertObject(r *request, next object) (object, error) {
	k := r.kind
	generated := next.GetName() == "" && next.GetGenerateName() != ""
	if generated {
		next.SetName(next.GetGenerateName() + s.nameSuffix())
	}
	next.SetUID(s.newUID())
	next.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	next.SetDeletionTimestamp(nil)
	next.SetDeletionGracePeriodSeconds(nil)
	next.SetSelfLink("")
	next.SetGeneration(0)
	if k.specChanged != nil {
		next.SetGeneration(1)
	}
	if k.clearStatus != nil {
		k.clearStatus(next)
	}
	if k.prepare != nil {
		k.prepare(next, nil)
	}
	at := objectKey(next.GetNamespace(), next.GetName())
	if err := s.validateObject(r, next, nil); err != nil {
		return nil, err
	}
	if _, ok := s.stores[k].objects[at]; ok {
		return nil, apierrors.NewAlreadyExists(k.groupResource(), next.GetName())
	}
	if r.dryRun() {
		return next, nil
	}
	s.commitObject(k, next, nil, watch.Added)
	s.scheduleCollection(k, next)
	return next, nil
}

// setNamespace sets the namespace, which must exist.
func (s *Server) setNamespace(r *request, next object) error {
	if next.GetNamespace() == "" {
		next.SetNamespace(r.namespace)
	}
	if next.GetNamespace() != r.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if !r.kind.namespaced {
		return nil
	}
	o, ok := s.stores[s.kinds["v1"]["namespaces"]].objects[objectKey("", r.namespace)]
	if !ok {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), r.namespace)
	}
	if o.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(r.kind.groupResource(), next.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", r.namespace), Field: "metadata.namespace",
	})
	return err
}

func (s *Server) validateObject(r *request, next, before object) error {
	k := r.kind
	meta := field.NewPath("metadata")
	name := k.validateName
	if name == nil {
		name = validation.NameIsDNSSubdomain
	}
	errs := validation.ValidateObjectMetaAccessor(next, k.namespaced, name, meta)
	if before != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(next, before, meta)...)
	}
	if k.allocate != nil && len(errs) == 0 {
		errs = k.allocate(s, next, before)
	}
	if k.validate != nil {
		errs = append(errs, k.validate(next, before)...)
	}
	switch {
	case len(errs) == 0:
		return nil
	case errs[0].Type == field.ErrorTypeInternal:
		return apierrors.NewInternalError(errs[0])
	}
	return apierrors.NewInvalid(k.gvk.GroupKind(), next.GetName(), errs)
}

func (s *Server) updateObject(r *request) (object, int, error) {
	k := r.kind
	next, err := decodeObject(k, r.header.Get("Content-Type"), r.body)
	if err != nil {
		return nil, 0, err
	}
	if next.GetName() == "" {
		next.SetName(r.name)
	}
	if next.GetName() != r.name {
		return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", next.GetName(), r.name))
	}
	live, err := s.getObject(r)
	switch {
	case err == nil:
	case k.createsOnUpdate && r.subresource == "" && next.GetResourceVersion() == "":
		o, err := s.createObject(r, next)
		return o, http.StatusCreated, err
	default:
		return nil, 0, err
	}
	if next.GetNamespace() == "" {
		next.SetNamespace(r.namespace)
	}
	if next.GetNamespace() != r.namespace {
		return nil, 0, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	o, err := s.replaceObject(r, k.managers.updateOwnership(k, live, next, r), live)
	return o, http.StatusOK, err
}

// replaceObject stores nothing if nothing changed.
func (s *Server) replaceObject(r *request, next, live object) (object, error) {
	k := r.kind
	if err := checkCurrent(r, next, live); err != nil {
		return nil, err
	}
	status := r.subresource == "status"
	switch {
	case status && k.retainSpec != nil:
		k.retainSpec(next, live)
	case !status && k.retainStatus != nil:
		k.retainStatus(next, live)
	}
	if next.GetUID() == "" {
		next.SetUID(live.GetUID())
	}
	next.SetResourceVersion(live.GetResourceVersion())
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	next.SetGeneration(live.GetGeneration())
	if k.prepare != nil && !status {
		k.prepare(next, live)
	}
	if k.specChanged != nil && k.specChanged(next, live) {
		next.SetGeneration(live.GetGeneration() + 1)
	}
	if err := s.validateObject(r, next, live); err != nil {
		return nil, err
	}
	retainTimes(next, live)
	if r.dryRun() || equality.Semantic.DeepEqual(next, live) {
		return next, nil
	}
	if live.GetDeletionTimestamp() != nil && !k.isTerminating(next) {
		s.deleteObject(k, live)
		return next, nil
	}
	s.commitObject(k, next, live, watch.Modified)
	s.scheduleCollection(k, next)
	return next, nil
}

func checkCurrent(r *request, next, live object) error {
	k := r.kind
	if uid := next.GetUID(); uid != "" && uid != live.GetUID() {
		return apierrors.NewConflict(k.groupResource(), r.name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, live.GetUID())) //nolint:staticcheck // the words of the API server
	}
	switch version := next.GetResourceVersion(); {
	case version == live.GetResourceVersion(), version == "" && k.allowsUnconditional:
		return nil
	case version == "":
		return apierrors.NewInvalid(schema.GroupKind{Group: k.gvk.Group, Kind: k.resource}, r.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	return apierrors.NewConflict(k.groupResource(), r.name, errModified)
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// retainTimes ignores changes that only affect timestamps.
func retainTimes(next, live object) {
	a, b := slices.Clone(next.GetManagedFields()), live.GetManagedFields()
	if len(a) != len(b) {
		return
	}
	for i := range a {
		a[i].Time = b[i].Time
	}
	if equality.Semantic.DeepEqual(a, b) {
		next.SetManagedFields(b)
	}
}

// deleteObject deletes an object and returns the final state that watches receive.
func (s *Server) deleteObject(k *resourceKind, live object) object {
	last := copyObject(live)
	s.commitObject(k, last, live, watch.Deleted)
	s.collectOrphans(live.GetUID())
	return last
}
