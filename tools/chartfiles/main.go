// SPDX-License-Identifier: Apache-2.0

// Command chartfiles writes the files of charts/weir that are made from others: manifests/ and crds/ are
// copies from config/, so that a copy of the chart's folder is complete, and README.md is rendered from
// values.schema.json and values.yaml.
//
//	copies.go  copies from config/
//	readme.go  README.md
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := writeFiles("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// chartDir is the chart's folder below the repository root.
const chartDir = "charts/weir"

// writeFiles replaces the generated files below the repository root.
func writeFiles(root string) error {
	files, err := generateFiles(root)
	if err != nil {
		return err
	}
	for _, dir := range generatedDirs {
		if err := os.RemoveAll(filepath.Join(root, chartDir, dir)); err != nil {
			return err
		}
	}
	for name, content := range files {
		path := filepath.Join(root, chartDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // it is published
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
	}
	return nil
}

// generateFiles returns the generated files by their path in the chart.
func generateFiles(root string) (map[string]string, error) {
	files, err := readCopies(root)
	if err != nil {
		return nil, err
	}
	files["README.md"], err = renderReadme(filepath.Join(root, chartDir))
	return files, err
}
