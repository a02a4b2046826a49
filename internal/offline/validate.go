// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type objectSource struct {
	place, kind, namespace, name string
	doc                          []byte
}

func (o objectSource) displayName() string {
	return o.kind + " " + objectName(metav1.ObjectMeta{Namespace: o.namespace, Name: o.name})
}

var defaultNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}

// MissingNamespaces returns an error for each object in a missing namespace, if the files contain
// Namespaces.
func (o *Objects) MissingNamespaces() []error {
	namespaces := slices.Clone(defaultNamespaces)
	for _, n := range o.Namespaces {
		namespaces = append(namespaces, n.Name)
	}
	var errs []error
	for _, at := range o.sources {
		if len(o.Namespaces) > 0 && at.namespace != "" && !slices.Contains(namespaces, at.namespace) {
			errs = append(errs, fmt.Errorf("%s: %s: metadata.namespace: the files have Namespaces, and no %s among them", at.place, at.displayName(), at.namespace))
		}
	}
	return errs
}

const planFieldManager = "weir-plan"

// ValidateOnServer validates the objects with server-side dry runs. err means the server could not decide.
func (o *Objects) ValidateOnServer(ctx context.Context, at client.Client) (rejected []error, err error) {
	strict := client.WithFieldValidation(at, metav1.FieldValidationStrict)
	for _, from := range o.sources {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(from.doc); err != nil {
			return nil, fmt.Errorf("%s: %w", from.place, err)
		}
		if from.namespace != "" {
			u.SetNamespace(from.namespace)
		}
		err := o.dryRunObject(ctx, strict, u)
		switch status := apierrors.APIStatus(nil); {
		case err == nil:
		case isUnauthorized(err), !errors.As(err, &status), status.Status().Code >= 500:
			return nil, fmt.Errorf("%s: %s: not checked: %w", from.place, from.displayName(), err)
		default:
			rejected = append(rejected, fmt.Errorf("%s: %s: the API server refuses it: %w", from.place, from.displayName(), err))
		}
	}
	return rejected, nil
}

// isUnauthorized reports whether the caller lacks a right. Admission also returns Forbidden.
func isUnauthorized(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), `is forbidden: User "`)
}

func (o *Objects) dryRunObject(ctx context.Context, at client.Client, u *unstructured.Unstructured) error {
	for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	body, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	err = at.Create(ctx, u.DeepCopy(), client.DryRunAll, client.FieldOwner(planFieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return at.Patch(ctx, u, client.RawPatch(types.ApplyPatchType, body), client.DryRunAll, client.FieldOwner(planFieldManager), client.ForceOwnership)
	case apierrors.IsNotFound(err) && o.hasNamespace(u.GetNamespace()):
		return nil // its namespace is among the files
	}
	return err
}

func (o *Objects) hasNamespace(name string) bool {
	for _, n := range o.Namespaces {
		if n.Name == name {
			return true
		}
	}
	return false
}
