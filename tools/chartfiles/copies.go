// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// generatedDirs are the folders of the chart that contain only generated files.
var generatedDirs = []string{"manifests", "crds"}

// manifestDirs are the folders of config/ that the chart renders.
var manifestDirs = []string{
	"admin-state", "admission", "delay-node-deletion", "edit", "gateway-api", "metrics", "network-policy", "page", "prometheus", "provisioning", "rbac",
	"readiness-gates", "resource-lease", "several-load-balancers", "view",
}

// templated are the files that are templates in the chart.
var templated = map[string]bool{"deployment.yaml": true, "kustomization.yaml": true}

// readCopies returns the copied files by their path in the chart.
func readCopies(root string) (map[string]string, error) {
	files := map[string]string{}
	add := func(pattern, to string) error {
		names, err := filepath.Glob(filepath.Join(root, "config", pattern))
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return fmt.Errorf("config/%s: there is no such file", pattern)
		}
		for _, name := range names {
			if templated[filepath.Base(name)] {
				continue
			}
			content, err := os.ReadFile(name) //nolint:gosec // a file of the repository
			if err != nil {
				return err
			}
			files[filepath.Join(to, filepath.Base(name))] = string(content)
		}
		return nil
	}
	if err := add("crd/weir.dev_*.yaml", "crds"); err != nil {
		return nil, err
	}
	for _, dir := range manifestDirs {
		if err := add(filepath.Join(dir, "*.yaml"), filepath.Join("manifests", dir)); err != nil {
			return nil, err
		}
	}
	return files, nil
}
