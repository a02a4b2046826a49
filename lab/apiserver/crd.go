// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

type customDefinition struct {
	schema    *apiextensionsv1.JSONSchemaProps
	types     managedfields.TypeConverter
	validator *validate.SchemaValidator
	rules     []boundRule
}

// Install serves a custom resource in the first version of its definition.
func (s *Server) Install(crd []byte) error {
	var got apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(crd, &got); err != nil {
		return fmt.Errorf("custom resource definition: %w", err)
	}
	if len(got.Spec.Versions) == 0 || got.Spec.Versions[0].Schema == nil {
		return fmt.Errorf("custom resource definition %q has no version with a schema", got.Name)
	}
	version := got.Spec.Versions[0]
	gvk := schema.GroupVersionKind{Group: got.Spec.Group, Version: version.Name, Kind: got.Spec.Names.Kind}
	d, err := compileDefinition(gvk, version.Schema.OpenAPIV3Schema)
	if err != nil {
		return fmt.Errorf("custom resource definition %s: %w", got.Name, err)
	}
	k := customKind(gvk, d)
	k.resource, k.shortNames = got.Spec.Names.Plural, got.Spec.Names.ShortNames
	k.namespaced = got.Spec.Scope == apiextensionsv1.NamespaceScoped
	k.status = version.Subresources != nil && version.Subresources.Status != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addKind(k)
	return nil
}

func customKind(gvk schema.GroupVersionKind, d *customDefinition) *resourceKind {
	k := &resourceKind{gvk: gvk, crd: d, validate: d.validateObject}
	k.setDefaults = func(o object) {
		u := o.(*unstructured.Unstructured)
		removeEmptyMetadata(u)
		pruneFields(u.Object, d.schema, true)
		applyDefaults(u.Object, d.schema)
	}
	k.clearStatus = func(o object) {
		if k.status {
			delete(o.(*unstructured.Unstructured).Object, "status")
		}
	}
	k.retainStatus = func(next, before object) {
		if k.status {
			copyField(next.(*unstructured.Unstructured), before.(*unstructured.Unstructured), "status")
		}
	}
	k.retainSpec = func(next, before object) {
		n, fields := next.(*unstructured.Unstructured), next.GetManagedFields()
		status, ok := n.Object["status"]
		n.Object = before.(*unstructured.Unstructured).DeepCopy().Object
		n.SetManagedFields(fields)
		delete(n.Object, "status")
		if ok {
			n.Object["status"] = status
		}
	}
	k.specChanged = func(next, before object) bool {
		a, b := next.(*unstructured.Unstructured).Object, before.(*unstructured.Unstructured).Object
		return !equality.Semantic.DeepEqual(specFields(a, k.status), specFields(b, k.status))
	}
	return k
}

// removeEmptyMetadata removes empty metadata, as the typed ObjectMeta does.
func removeEmptyMetadata(u *unstructured.Unstructured) {
	m, _ := u.Object["metadata"].(map[string]any)
	for name, v := range m {
		switch v := v.(type) {
		case []any:
			if len(v) == 0 {
				delete(m, name)
			}
		case map[string]any:
			if len(v) == 0 {
				delete(m, name)
			}
		case nil:
			delete(m, name)
		}
	}
}

func specFields(o map[string]any, status bool) map[string]any {
	rest := make(map[string]any, len(o))
	for name, v := range o {
		if name != "metadata" && (name != "status" || !status) {
			rest[name] = v
		}
	}
	return rest
}

func copyField(next, before *unstructured.Unstructured, name string) {
	delete(next.Object, name)
	if v, ok := before.Object[name]; ok {
		next.Object[name] = runtime.DeepCopyJSONValue(v)
	}
}

func compileDefinition(gvk schema.GroupVersionKind, props *apiextensionsv1.JSONSchemaProps) (*customDefinition, error) {
	d := &customDefinition{schema: props}
	var err error
	if d.rules, err = bindRules(props); err != nil {
		return nil, err
	}
	if d.types, err = fieldTypes(gvk, props); err != nil {
		return nil, err
	}
	plain, err := openAPI(props)
	if err != nil {
		return nil, err
	}
	d.validator = validate.NewSchemaValidator(plain, nil, "", strfmt.Default)
	return d, nil
}

func openAPI(props *apiextensionsv1.JSONSchemaProps) (*spec.Schema, error) {
	text, err := json.Marshal(props)
	if err != nil {
		return nil, err
	}
	s := &spec.Schema{}
	return s, json.Unmarshal(text, s)
}

// fieldTypes adds the object metadata.
func fieldTypes(gvk schema.GroupVersionKind, props *apiextensionsv1.JSONSchemaProps) (managedfields.TypeConverter, error) {
	s, err := openAPI(props)
	if err != nil {
		return nil, err
	}
	s.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
	})
	var meta spec.Schema
	if err := json.Unmarshal([]byte(objectMetaSchema), &meta); err != nil {
		return nil, err
	}
	s.Properties["metadata"] = meta
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"dev.custom." + gvk.Kind: s}, false)
}

const objectMetaSchema = `{"type":"object","properties":{
	"name":{"type":"string"},"generateName":{"type":"string"},"namespace":{"type":"string"},"selfLink":{"type":"string"},
	"uid":{"type":"string"},"resourceVersion":{"type":"string"},"generation":{"type":"integer","format":"int64"},
	"creationTimestamp":{"type":"string"},"deletionTimestamp":{"type":"string"},"deletionGracePeriodSeconds":{"type":"integer","format":"int64"},
	"labels":{"type":"object","additionalProperties":{"type":"string"}},
	"annotations":{"type":"object","additionalProperties":{"type":"string"}},
	"finalizers":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
	"ownerReferences":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["uid"],"items":{"type":"object",
		"x-kubernetes-map-type":"atomic","properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"name":{"type":"string"},
		"uid":{"type":"string"},"controller":{"type":"boolean"},"blockOwnerDeletion":{"type":"boolean"}}}},
	"managedFields":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","properties":{
		"manager":{"type":"string"},"operation":{"type":"string"},"apiVersion":{"type":"string"},"time":{"type":"string"},
		"fieldsType":{"type":"string"},"subresource":{"type":"string"},"fieldsV1":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}
	}}`
