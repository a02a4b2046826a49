// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

const (
	maxChartBytes  = 8 << 20
	maxFiles       = 2000
	maxOutputBytes = 1 << 20
)

func renderChart(r Request) ([]Document, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	archive.MaxDecompressedChartSize = maxChartBytes
	c, err := loader.LoadArchive(bytes.NewReader(r.Chart))
	if err != nil {
		return nil, fmt.Errorf("it is no packed chart: %w", err)
	}
	version, err := common.ParseKubeVersion(r.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("version of the target: %w", err)
	}
	if err := checkInstall(c, version); err != nil {
		return nil, err
	}
	values := map[string]any{}
	for _, text := range r.Values {
		var next map[string]any
		if err := errors.Join(yaml.Unmarshal(text, &next), checkSingleDocument(text)); err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
		values = util.MergeTables(next, values)
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, err
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion, caps.APIVersions = *version, common.VersionSet(r.APIVersions)
	as := common.ReleaseOptions{Name: r.ReleaseName, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	// Skip schema validation: a schema may refer to remote URLs.
	renderValues, err := util.ToRenderValuesWithSchemaValidation(c, values, as, caps, true)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, renderValues)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	return sortDocuments(c, files)
}

// checkSingleDocument rejects text after the document, which Helm would ignore.
func checkSingleDocument(values []byte) error {
	var node yamlnode.Node
	reads := yamlnode.NewDecoder(bytes.NewReader(values))
	if reads.Decode(&node) != nil || errors.Is(reads.Decode(&node), io.EOF) {
		return nil
	}
	return errors.New("text follows the end of the document: values are one document")
}

func checkInstall(c *chart.Chart, version *common.KubeVersion) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if len(c.Raw) > maxFiles {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	if c.Metadata.Type != "" && c.Metadata.Type != "application" {
		return fmt.Errorf("it is of type %s, of which none is installed", c.Metadata.Type)
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, version.Version) {
		return fmt.Errorf("it is for Kubernetes %s, and the target is %s", want, version.Version)
	}
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(dependency *chart.Chart) bool { return dependency.Name() == d.Name }) {
			return fmt.Errorf("the chart %s, on which it depends, is not in it: run helm dependency build before helm package", d.Name)
		}
	}
	return nil
}

func sortDocuments(c *chart.Chart, files map[string]string) ([]Document, error) {
	var documents []Document
	size := 0
	for _, crd := range c.CRDObjects() {
		documents = append(documents, Document{crd.Filename, string(crd.File.Data)})
		size += len(crd.File.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if size += len(files[name]); size > maxOutputBytes {
			return nil, fmt.Errorf("what is rendered has more than %d MiB", maxOutputBytes>>20)
		}
		if err := rejectHooks(name, files[name]); err != nil {
			return nil, err
		}
	}
	_, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	for _, m := range sorted {
		documents = append(documents, Document{m.Name, m.Content})
	}
	return documents, nil
}

// rejectHooks rejects hooks, which do not fit repeated attempts, except tests.
func rejectHooks(file, text string) error {
	for _, document := range releaseutil.SplitManifests(text) {
		var head releaseutil.SimpleHead
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return fmt.Errorf("%s: %w", file, errors.New(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")))
		}
		if head.Metadata == nil {
			continue
		}
		for hook := range strings.SplitSeq(head.Metadata.Annotations[release.HookAnnotation], ",") {
			switch hook = strings.ToLower(strings.TrimSpace(hook)); hook {
			case "", release.HookTest.String(), "test-success":
			default:
				return fmt.Errorf("%s %s of %s is a hook (%s), and hooks are not run: switch it off by a value, and use a step of kind job in its place", head.Kind, head.Metadata.Name, file, hook)
			}
		}
	}
	return nil
}
