// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
)

func pruneFields(v any, s *apiextensionsv1.JSONSchemaProps, root bool) {
	if s == nil || s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			if root && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
				continue
			}
			if p, ok := s.Properties[name]; ok {
				pruneFields(below, &p, false)
			} else if s.AdditionalProperties != nil {
				pruneFields(below, s.AdditionalProperties.Schema, false)
			} else {
				delete(v, name)
			}
		}
	case []any:
		if s.Items != nil {
			for _, below := range v {
				pruneFields(below, s.Items.Schema, false)
			}
		}
	}
}

func applyDefaults(v any, s *apiextensionsv1.JSONSchemaProps) {
	switch v := v.(type) {
	case map[string]any:
		for name, p := range s.Properties {
			if got, ok := v[name]; p.Default != nil && (!ok || got == nil && !p.Nullable) {
				var d any
				if json.Unmarshal(p.Default.Raw, &d) == nil {
					v[name] = d
				}
			}
			if below, ok := v[name]; ok {
				applyDefaults(below, &p)
			}
		}
	case []any:
		if s.Items != nil && s.Items.Schema != nil {
			for _, below := range v {
				applyDefaults(below, s.Items.Schema)
			}
		}
	}
}

func (d *customDefinition) validateObject(next, before object) field.ErrorList {
	u := next.(*unstructured.Unstructured)
	var errs field.ErrorList
	for _, err := range d.validator.Validate(u.Object).Errors {
		errs = append(errs, toFieldError(err))
	}
	if slices.ContainsFunc(errs, preventsRules) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	for _, r := range d.rules {
		errs = append(errs, r.checkRule(u, before)...)
	}
	return errs
}

func preventsRules(err *field.Error) bool {
	return slices.Contains([]field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}, err.Type)
}

func toFieldError(err error) *field.Error {
	v, ok := errors.AsType[*openapierrors.Validation](err)
	if !ok {
		return field.Invalid(nil, "", err.Error())
	}
	at := field.NewPath(strings.TrimPrefix(v.Name, "."))
	switch v.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(at, "")
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(at, v.Value, strings.TrimPrefix(v.Error(), v.Name+" "))
	case openapierrors.TooLongFailCode:
		return field.TooLong(at, v.Value, -1)
	case openapierrors.EnumFailCode:
		values := make([]string, 0, len(v.Values))
		for _, value := range v.Values {
			values = append(values, fmt.Sprint(value))
		}
		return field.NotSupported(at, v.Value, values)
	}
	return field.Invalid(at, v.Value, strings.TrimSpace(strings.TrimPrefix(v.Error(), v.Name+" in body ")))
}

// validationRule is an x-kubernetes-validations rule in Go.
type validationRule struct {
	isValid func(got, before map[string]any) bool
	// transition rules compare with the previous value.
	transition bool
}

// rules implements the rules of config/crd; no others are supported.
var rules = map[string]validationRule{
	"has(self.serviceRef) != has(self.nodes)": {isValid: func(got, _ map[string]any) bool {
		_, service := got["serviceRef"]
		_, nodes := got["nodes"]
		return service != nodes
	}},
	"!has(self.pause) || has(self.paused) && self.paused": {isValid: func(got, _ map[string]any) bool {
		_, pause := got["pause"]
		return !pause || got["paused"] == true
	}},
	"self.loadBalancer == oldSelf.loadBalancer && self.poolName == oldSelf.poolName && self.ipFamily == oldSelf.ipFamily": {
		transition: true,
		isValid: func(got, before map[string]any) bool {
			return equality.Semantic.DeepEqual(got["loadBalancer"], before["loadBalancer"]) && got["poolName"] == before["poolName"] && got["ipFamily"] == before["ipFamily"]
		},
	},
	"!has(oldSelf.status) || !has(oldSelf.status.poolID) || (has(self.spec.membership) ? self.spec.membership : 'Auto') == (has(oldSelf.spec.membership) ? oldSelf.spec.membership : 'Auto')": {
		transition: true,
		isValid: func(got, before map[string]any) bool {
			taken, _, _ := unstructured.NestedString(before, "status", "poolID")
			return taken == "" || membershipField(got) == membershipField(before)
		},
	},
}

func membershipField(pool map[string]any) string {
	if got, ok, _ := unstructured.NestedString(pool, "spec", "membership"); ok {
		return got
	}
	return "Auto"
}

type boundRule struct {
	validationRule
	path          []string
	text, message string
	// at is the rule's fieldPath below path.
	at []string
}

func bindRules(s *apiextensionsv1.JSONSchemaProps, path ...string) ([]boundRule, error) {
	var items []boundRule
	for _, v := range s.XValidations {
		r, ok := rules[v.Rule]
		if !ok {
			return nil, fmt.Errorf("the rule %q at %q is not one that can be evaluated here: add it to lab/apiserver/crdschema.go", v.Rule, strings.Join(path, "."))
		}
		items = append(items, boundRule{validationRule: r, path: slices.Clone(path), text: v.Rule, message: v.Message, at: strings.FieldsFunc(v.FieldPath, func(r rune) bool { return r == '.' })})
	}
	for name, p := range s.Properties {
		below, err := bindRules(&p, append(slices.Clone(path), name)...)
		if err != nil {
			return nil, err
		}
		items = append(items, below...)
	}
	return items, nil
}

func (b boundRule) checkRule(u *unstructured.Unstructured, before object) field.ErrorList {
	got, ok, _ := unstructured.NestedFieldNoCopy(u.Object, b.path...)
	if !ok {
		return nil
	}
	now, _ := got.(map[string]any)
	var previous map[string]any
	if before != nil {
		old, _, _ := unstructured.NestedFieldNoCopy(before.(*unstructured.Unstructured).Object, b.path...)
		previous, _ = old.(map[string]any)
	}
	if b.transition && previous == nil || b.isValid(now, previous) {
		return nil
	}
	message := b.message
	if message == "" {
		message = "failed rule: " + b.text
	}
	var at *field.Path
	for _, name := range slices.Concat(b.path, b.at) {
		if at == nil {
			at = field.NewPath(name)
		} else {
			at = at.Child(name)
		}
	}
	return field.ErrorList{field.Invalid(at, runtime.DeepCopyJSONValue(now), message)}
}
