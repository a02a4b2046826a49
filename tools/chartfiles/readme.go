// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const readmeHead = `# Helm chart of Weir

Keeps Azure Load Balancers in sync with a Kubernetes cluster. [Install Weir](../../docs/guide/install.md#with-helm) has the
steps, [AKS](../../docs/guide/aks.md) and [self-managed clusters](../../docs/guide/self-managed.md) are quick starts.

` + "```console" + `
$ kubectl create namespace weir-system
$ kubectl -n weir-system create secret generic weir-azure --from-file=azure.json
$ helm install weir charts/weir --namespace weir-system --set image.repository=<your registry>/weir --set image.tag=dev
$ helm test weir --namespace weir-system --logs
` + "```" + `

` + "`helm test`" + ` runs ` + "`weir doctor`" + ` with the controller's image, ServiceAccount, identity and azure.json. With the default values
the chart installs the same objects as ` + "`kubectl apply -k config`" + `. Object names do not depend on the release: a cluster has one Weir.

## Values

A value that is not in this table is an error.

| Value | Default | Meaning |
|---|---|---|
`

// schema is the part of a JSON schema that describes values.
type schema struct {
	Description string            `json:"description"`
	Deprecated  bool              `json:"deprecated"`
	Properties  map[string]schema `json:"properties"`
}

// renderReadme renders a chart's README.md from values.schema.json and values.yaml, in the order of names.
func renderReadme(chart string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(chart, "values.schema.json")) //nolint:gosec // a file of the repository
	text, yamlErr := os.ReadFile(filepath.Join(chart, "values.yaml"))   //nolint:gosec // likewise
	if err = errors.Join(err, yamlErr); err != nil {
		return "", err
	}
	var s schema
	var values map[string]any
	if err := errors.Join(json.Unmarshal(raw, &s), yaml.Unmarshal(text, &values)); err != nil {
		return "", err
	}
	rows, err := renderRows(s, values, "")
	return readmeHead + strings.Join(rows, ""), err
}

// renderRows renders a row for each described value, and for values of an object that is not described
// itself.
func renderRows(s schema, values map[string]any, prefix string) (rows []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		of, path := s.Properties[name], prefix+name
		value, set := values[name]
		inner, isObject := value.(map[string]any)
		switch {
		case of.Description == "" && !isObject:
			return nil, fmt.Errorf("values.schema.json: %s has no description", path)
		case of.Description == "":
			more, err := renderRows(of, inner, path+".")
			if err != nil {
				return nil, err
			}
			rows = append(rows, more...)
		case of.Deprecated || name == "global":
		case !set:
			return nil, fmt.Errorf("values.yaml: %s has no default", path)
		default:
			shown, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", path, shown, of.Description))
		}
	}
	for name := range values {
		if _, known := s.Properties[name]; !known {
			return nil, fmt.Errorf("values.schema.json: %s%s is not described", prefix, name)
		}
	}
	return rows, nil
}
