// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/charts"
)

// applyChart applies the objects of a chart. The step's input includes their names but not their content,
// which may be random.
func (r *run) applyChart(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	return r.applyStep(ctx, step.Name, step.Helm.Prune, func(ctx context.Context) (*loadedStep, error) {
		var request charts.Request
		version, apis, err := charts.ReadCapabilities(ctx, r.target.discovery)
		if err != nil {
			return nil, err
		}
		l, err := r.loadObjects(ctx, func(ctx context.Context) ([]text, error) {
			var secret bool
			var err error
			if request, secret, err = r.readChart(ctx, step.Helm); err != nil {
				return nil, err
			}
			request.KubeVersion, request.APIVersions = version, apis
			return renderChart(ctx, r, request, secret)
		})
		if err != nil {
			return nil, err
		}
		names := make([]string, len(l.objects))
		for i, o := range l.objects {
			l.objects[i].defaultNamespace = request.Namespace
			names[i] = o.gvk.GroupVersion().String() + " " + o.String()
		}
		l.input = r.inputDigest(step, request.Chart, request.Values, request.KubeVersion, names)
		return l, nil
	})
}

func (r *run) readChart(ctx context.Context, step *v1alpha1.HelmStep) (charts.Request, bool, error) {
	request := charts.Request{ReleaseName: step.ReleaseName, Namespace: cmp.Or(step.Namespace, r.target.namespace)}
	var err error
	if request.Chart, err = readKey(ctx, r, step.Chart); err != nil {
		return request, false, fmt.Errorf("chart: %w", err)
	}
	secret, size := step.Chart.Secret != "", len(request.Chart)
	for _, from := range step.ValuesFrom {
		values, err := readKey(ctx, r, from)
		if err != nil {
			return request, false, fmt.Errorf("values: %w", err)
		}
		request.Values = append(request.Values, values)
		secret, size = secret || from.Secret != "", size+len(values)
	}
	if step.Values != nil {
		request.Values = append(request.Values, step.Values.Raw)
	}
	if size > 2*maxSourceBytes {
		return request, false, newInvalidError("the chart and its values have more than %d MiB", 2*maxSourceBytes>>20)
	}
	return request, secret, nil
}

func readKey(ctx context.Context, a *run, k v1alpha1.KeySource) ([]byte, error) {
	source := v1alpha1.ManifestSource{ConfigMap: k.ConfigMap, Secret: k.Secret}
	data, err := a.readSource(ctx, source)
	if value, ok := data[k.Key]; ok || err != nil {
		return value, err
	}
	return nil, fmt.Errorf("%s has no key %s", sourceName(source), k.Key)
}

// renderChart omits Helm's error message if secret is set, because it may quote a Secret.
func renderChart(ctx context.Context, a *run, request charts.Request, secret bool) ([]text, error) {
	began := time.Now()
	documents, err := charts.RenderChart(ctx, request)
	a.reconciler.chargeWork(time.Since(began))
	if chartErr, ok := errors.AsType[charts.Error](err); ok && secret {
		return nil, newInvalidError("the chart cannot be rendered, and the message may quote a Secret")
	} else if ok {
		return nil, newInvalidError("chart: %w", chartErr)
	}
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	texts := make([]text, len(documents))
	size := 0
	for i, d := range documents {
		if size += len(d.Text); size > maxSourceBytes {
			return nil, newInvalidError("what the chart becomes has more than %d MiB", maxSourceBytes>>20)
		}
		texts[i] = text{[]byte(d.Text), d.Name, secret, true}
	}
	return texts, nil
}
