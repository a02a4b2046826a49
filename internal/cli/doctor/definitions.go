// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/config/crd"
	"weir.dev/weir/internal/humanize"
)

const installCommand = "kubectl apply --server-side -k config/crd"

// requiredDefinition is the CRD of the controller; the others are for weir-provisioner.
const requiredDefinition = "backendpools.weir.dev"

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

func (d Doctor) definitionChecks() []namedCheck {
	var checks []namedCheck
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return nil
	}
	for _, file := range files {
		want := &unstructured.Unstructured{}
		content, err := crd.Files.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(content, &want.Object)
		}
		checks = append(checks, namedCheck{"definition " + want.GetName(), func(ctx context.Context) []Check {
			if err != nil {
				return singleResult(Unknown, err.Error(), "")
			}
			return d.checkDefinition(ctx, want)
		}})
	}
	return checks
}

func (d Doctor) checkDefinition(ctx context.Context, want *unstructured.Unstructured) []Check {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(definitionKind)
	err := d.API.Get(ctx, client.ObjectKeyFromObject(want), obj)
	lacks, reason := Fail, "Weir does not start without it"
	if want.GetName() != requiredDefinition {
		lacks, reason = Warn, "weir-provisioner does not start without it"
	}
	switch {
	case apierrors.IsNotFound(err):
		return singleResult(lacks, "it is not in the cluster, and "+reason, installCommand)
	case apierrors.IsForbidden(err):
		return singleResult(Unknown, "you may not get customresourcedefinitions", "run it with the rights of a cluster administrator")
	case err != nil:
		return noResponse(ctx, err)
	}
	if !isEstablished(obj) {
		return singleResult(lacks, "the API server does not serve it: its condition Established is not True", "kubectl describe crd "+obj.GetName())
	}
	missing, surplus := diffPaths(schemaPaths(want), schemaPaths(obj))
	switch {
	case len(missing) > 0:
		return singleResult(lacks, "the API server drops what it does not know: "+humanize.FormatList(missing, 5), installCommand)
	case len(surplus) > 0:
		return singleResult(Warn, "it is newer than this program, which does not know "+humanize.FormatList(surplus, 5), "see which version of Weir the cluster runs: weir version")
	}
	return singleResult(OK, "it has all fields of this version", "")
}

func isEstablished(obj *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		of, _ := c.(map[string]any)
		return of["type"] == "Established" && of["status"] == "True"
	})
}

// schemaPaths returns the paths of all fields of a CRD, prefixed with each served version.
func schemaPaths(of *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(of.Object, "spec", "versions")
	var paths []string
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		name, _ := version["name"].(string)
		paths = append(paths, name)
		root, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		for _, field := range propertyPaths(root) {
			paths = append(paths, name+" "+field)
		}
	}
	return paths
}

// propertyPaths returns sorted property paths with types, and CEL rules.
func propertyPaths(root map[string]any) []string {
	var paths []string
	var walk func(at string, of map[string]any)
	walk = func(at string, of map[string]any) {
		rules, _, _ := unstructured.NestedSlice(of, "x-kubernetes-validations")
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			paths = append(paths, fmt.Sprintf("%s rule %q", strings.TrimPrefix(at, "."), rule["rule"]))
		}
		properties, _, _ := unstructured.NestedMap(of, "properties")
		for name, p := range properties {
			property, _ := p.(map[string]any)
			paths = append(paths, fmt.Sprintf("%s (%v)", strings.TrimPrefix(at+"."+name, "."), property["type"]))
			walk(at+"."+name, property)
		}
		if items, ok := of["items"].(map[string]any); ok {
			walk(at+"[]", items)
		}
		if values, ok := of["additionalProperties"].(map[string]any); ok {
			walk(at+"{}", values)
		}
	}
	walk("", root)
	slices.Sort(paths)
	return paths
}

// diffPaths omits children of a missing field.
func diffPaths(want, got []string) (missing, surplus []string) {
	return subtractPaths(want, got), subtractPaths(got, want)
}

func subtractPaths(paths, these []string) (rest []string) {
	known := map[string]bool{}
	for _, t := range these {
		known[t] = true
	}
	for _, a := range paths {
		if path, _, _ := strings.Cut(a, " ("); !known[a] && !slices.ContainsFunc(rest, func(l string) bool {
			above, _, _ := strings.Cut(l, " (")
			return strings.HasPrefix(path, above+".") || strings.HasPrefix(path, above+"[]")
		}) {
			rest = append(rest, a)
		}
	}
	return rest
}
