// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// newGatewayObject returns an object of Gateway API; nil for other types. The versions have the same fields.
func newGatewayObject(of metav1.TypeMeta) client.Object {
	if schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).Group != gatewayv1.GroupName {
		return nil
	}
	switch of.Kind {
	case "GatewayClass":
		return &gatewayv1.GatewayClass{}
	case "Gateway":
		return &gatewayv1.Gateway{}
	case "TCPRoute":
		return &gatewayv1.TCPRoute{}
	case "UDPRoute":
		return &gatewayv1.UDPRoute{}
	case "TLSRoute":
		return &gatewayv1.TLSRoute{}
	case "ReferenceGrant":
		return &gatewayv1.ReferenceGrant{}
	}
	return nil
}

// ReadGateways reads the objects of Gateway API, of the types that the API server has.
func ReadGateways(ctx context.Context, from client.Reader) ([]client.Object, error) {
	var objects []client.Object
	for _, list := range []client.ObjectList{
		&gatewayv1.GatewayClassList{}, &gatewayv1.GatewayList{}, &gatewayv1.TCPRouteList{}, &gatewayv1.UDPRouteList{}, &gatewayv1.TLSRouteList{}, &gatewayv1.ReferenceGrantList{},
	} {
		if err := from.List(ctx, list); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading Gateways: %w", err)
		}
		err := meta.EachListItem(list, func(obj runtime.Object) error {
			objects = append(objects, obj.(client.Object))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading Gateways: %w", err)
		}
	}
	return objects, nil
}

// InvalidGateway is an object of Gateway API that an API server with Weir's version of the types would reject.
type InvalidGateway struct {
	Object client.Object
	Err    error
}

// addGatewayObject adds an object as far as it can be decoded. The user of InvalidGateways decides what its errors mean.
func (o *Objects) addGatewayObject(doc []byte, obj client.Object, of metav1.TypeMeta, m metav1.ObjectMeta) {
	err := decodeStrict(doc, obj)
	_, isClass := obj.(*gatewayv1.GatewayClass)
	if !isClass {
		setDefaultNamespace(&m)
	}
	withUID(&m, of.Kind)
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	obj.SetNamespace(m.Namespace)
	obj.SetName(m.Name)
	obj.SetUID(m.UID)
	o.recordOrigin(of.Kind, m, doc)
	o.Gateways = append(o.Gateways, obj)
	if err == nil {
		err = joinErrors(append(validateMeta(m, !isClass, apivalidation.NameIsDNSSubdomain), validateGatewayObject(obj)...))
	}
	if err != nil {
		o.InvalidGateways = append(o.InvalidGateways, InvalidGateway{obj, fmt.Errorf("%s: %s %s: %w", o.currentDocument, of.Kind, objectName(m), err)})
	}
}

// validateGatewayObject returns what the CRDs reject and the controller does not check again.
func validateGatewayObject(obj client.Object) (errs field.ErrorList) {
	switch x := obj.(type) {
	case *gatewayv1.GatewayClass:
		if x.Spec.ControllerName == "" {
			errs = append(errs, field.Required(spec.Child("controllerName"), ""))
		}
	case *gatewayv1.Gateway:
		errs = validateGateway(x)
	case *gatewayv1.TCPRoute:
		for i, rule := range x.Spec.Rules {
			errs = append(errs, validateBackends(spec.Child("rules").Index(i), rule.BackendRefs)...)
		}
	case *gatewayv1.UDPRoute:
		for i, rule := range x.Spec.Rules {
			errs = append(errs, validateBackends(spec.Child("rules").Index(i), rule.BackendRefs)...)
		}
	}
	return errs
}

func validateGateway(gw *gatewayv1.Gateway) (errs field.ErrorList) {
	if gw.Spec.GatewayClassName == "" {
		errs = append(errs, field.Required(spec.Child("gatewayClassName"), ""))
	}
	listeners := spec.Child("listeners")
	if len(gw.Spec.Listeners) == 0 {
		errs = append(errs, field.Required(listeners, ""))
	}
	seen := map[gatewayv1.SectionName]bool{}
	for i, l := range gw.Spec.Listeners {
		at := listeners.Index(i)
		if seen[l.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), l.Name))
		}
		seen[l.Name] = true
		errs = append(errs, newInvalidErrors(at.Child("name"), l.Name, validation.IsDNS1123Subdomain(string(l.Name)))...)
		errs = append(errs, newInvalidErrors(at.Child("port"), l.Port, validation.IsValidPortNum(int(l.Port)))...)
		if l.Protocol == "" {
			errs = append(errs, field.Required(at.Child("protocol"), ""))
		}
	}
	return errs
}

func validateBackends(rule *field.Path, refs []gatewayv1.BackendRef) (errs field.ErrorList) {
	at := rule.Child("backendRefs")
	if len(refs) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	for i, ref := range refs {
		if ref.Name == "" {
			errs = append(errs, field.Required(at.Index(i).Child("name"), ""))
		}
		if ref.Port != nil {
			errs = append(errs, newInvalidErrors(at.Index(i).Child("port"), *ref.Port, validation.IsValidPortNum(int(*ref.Port)))...)
		} else if ref.Kind == nil || *ref.Kind == "Service" {
			errs = append(errs, field.Required(at.Index(i).Child("port"), ""))
		}
	}
	return errs
}
