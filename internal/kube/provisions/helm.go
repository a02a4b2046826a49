// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/charts"
)

// helm brings the objects of a chart into the target. What goes into the step is the chart and its values,
// and which objects come of it: what is in them may be another one with each rendering.
func (a *run) helm(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	request, secret, err := a.chart(ctx, step.Helm)
	if err != nil {
		return err
	}
	texts, err := rendered(ctx, a, request, secret)
	if err != nil {
		return err
	}
	objects, err := a.decodes(ctx, texts)
	if err != nil {
		return err
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		objects[i].home = request.Namespace
		names[i] = o.GetAPIVersion() + " " + o.String()
	}
	input := a.inputOf(step, request.Chart, request.Values, request.KubeVersion, names)
	return a.bring(ctx, step.Name, objects, input, step.Helm.Prune)
}

// chart reads a chart, its values and what the target is; and whether any of it is of a Secret.
func (a *run) chart(ctx context.Context, step *v1alpha1.HelmStep) (charts.Request, bool, error) {
	r := charts.Request{ReleaseName: step.ReleaseName, Namespace: cmp.Or(step.Namespace, a.target.namespace)}
	var err error
	if r.Chart, err = keyOf(ctx, a, step.Chart); err != nil {
		return r, false, fmt.Errorf("chart: %w", err)
	}
	secret, size := step.Chart.Secret != "", len(r.Chart)
	for _, from := range step.ValuesFrom {
		values, err := keyOf(ctx, a, from)
		if err != nil {
			return r, false, fmt.Errorf("values: %w", err)
		}
		r.Values = append(r.Values, values)
		secret, size = secret || from.Secret != "", size+len(values)
	}
	if step.Values != nil {
		r.Values = append(r.Values, step.Values.Raw)
	}
	if size > 2*mostOfSources {
		return r, false, invalid("the chart and its values have more than %d MiB", 2*mostOfSources>>20)
	}
	r.KubeVersion, r.APIVersions, err = charts.Known(a.target.known)
	return r, secret, err
}

// keyOf reads one key from the namespace of the Provision.
func keyOf(ctx context.Context, a *run, k v1alpha1.KeySource) ([]byte, error) {
	source := v1alpha1.ManifestSource{ConfigMap: k.ConfigMap, Secret: k.Secret}
	all, err := a.source(ctx, source)
	if value, ok := all[k.Key]; ok || err != nil {
		return value, err
	}
	return nil, fmt.Errorf("%s has no key %s", cmpName(source), k.Key)
}

// rendered is what a chart becomes. Words about it may quote a Secret of which any part of it is.
func rendered(ctx context.Context, a *run, request charts.Request, secret bool) ([]text, error) {
	documents, err := a.room.charts.Render(ctx, a.p.Namespace, request)
	if is, wrong := errors.AsType[charts.Error](err); wrong && secret {
		return nil, invalid("the chart cannot be rendered, and the words about it may quote a Secret")
	} else if wrong {
		return nil, invalid("chart: %w", is)
	}
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	texts := make([]text, len(documents))
	size := 0
	for i, d := range documents {
		if size += len(d.Text); size > mostOfSources {
			return nil, invalid("what the chart becomes has more than %d MiB", mostOfSources>>20)
		}
		texts[i] = text{[]byte(d.Text), d.Name, secret}
	}
	return texts, nil
}
