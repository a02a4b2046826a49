// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

type object struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	body            []byte // JSON; nil while dropped
	// secret marks a Secret or an object from one: server messages about it may quote it.
	secret           bool
	defaultNamespace string // default namespace; empty means the target's
}

func (o object) String() string {
	return o.gvk.Kind + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/")
}

func (o object) newUnstructured() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.gvk)
	u.SetNamespace(o.namespace)
	u.SetName(o.name)
	return u
}

func (o object) isPrerequisite() bool {
	kind := o.gvk.GroupKind()
	return kind == schema.GroupKind{Kind: "Namespace"} || kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

func (r *run) readTexts(ctx context.Context, step *v1alpha1.ManifestsStep) ([]text, error) {
	var texts []text
	size := 0
	for _, source := range step.Sources {
		of, err := r.readSource(ctx, source)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if size += len(of[key]); size > maxSourceBytes {
				return nil, newInvalidError("the sources of a step have more than %d MiB: make several of it", maxSourceBytes>>20)
			}
			texts = append(texts, text{of[key], key + " of " + sourceName(source), source.Secret != "", false})
		}
	}
	return texts, nil
}

func sourceName(s v1alpha1.ManifestSource) string {
	if s.Secret != "" {
		return "Secret " + s.Secret
	}
	return "ConfigMap " + s.ConfigMap
}

func (r *run) readSource(ctx context.Context, s v1alpha1.ManifestSource) (map[string][]byte, error) {
	texts := map[string][]byte{}
	if s.Secret != "" {
		var secret corev1.Secret
		if err := r.reconciler.Live.Get(ctx, client.ObjectKey{Namespace: r.p.Namespace, Name: s.Secret}, &secret); err != nil {
			return nil, addRoleHint(r.p.Namespace, err)
		}
		return secret.Data, nil
	}
	var text corev1.ConfigMap
	if err := r.reconciler.Live.Get(ctx, client.ObjectKey{Namespace: r.p.Namespace, Name: s.ConfigMap}, &text); err != nil {
		return nil, addRoleHint(r.p.Namespace, err)
	}
	for key, value := range text.Data {
		texts[key] = []byte(value)
	}
	maps.Copy(texts, text.BinaryData)
	return texts, nil
}

func objectBodies(objects []object) []json.RawMessage {
	messages := make([]json.RawMessage, len(objects))
	for i, o := range objects {
		messages[i] = o.body
	}
	return messages
}

func objectIDs(objects []object) []string {
	var ids []string
	for _, o := range objects {
		ids = append(ids, strings.Join([]string{o.gvk.Group, o.gvk.Kind, o.namespace, o.name}, "/"))
	}
	return mergeIDs(nil, ids)
}

func mergeIDs(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func parseID(id string) (schema.GroupKind, client.ObjectKey, error) {
	part := strings.Split(id, "/")
	if len(part) != 4 {
		return schema.GroupKind{}, client.ObjectKey{}, errors.New("no name of an inventory")
	}
	return schema.GroupKind{Group: part[0], Kind: part[1]}, client.ObjectKey{Namespace: part[2], Name: part[3]}, nil
}
